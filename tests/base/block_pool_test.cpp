#include "libcore/base/block_pool.h"

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace megalith {
namespace {

/// Bytes of a block that are in memory.
size_t in_memory(const BlockPool::Block& block) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> there(BlockPool::kBlock / page);
  if (::mincore(block.data, BlockPool::kBlock, there.data()) != 0) return 0;
  size_t bytes = 0;
  for (const unsigned char is : there) bytes += (is & 1) * page;
  return bytes;
}

TEST(BlockPool, LendsEachBlockToOneAtATime) {
  BlockPool pool;
  std::set<char*> blocks;
  for (size_t i = 0; i < 200; ++i) {  // more than one mapping
    char* const block = pool.take().data;
    for (char* const other : blocks) ASSERT_GE(std::abs(block - other), ptrdiff_t{BlockPool::kBlock});
    std::memset(block, static_cast<int>(i), BlockPool::kBlock);
    blocks.insert(block);
  }
  for (char* const block : blocks) pool.give({.data = block});
  for (size_t i = 0; i < 200; ++i) EXPECT_EQ(blocks.erase(pool.take().data), 1U);
}

TEST(BlockPool, TakesFirstWhatTheThreadHadAndWasGivenLast) {
  BlockPool pool;
  const BlockPool::Block first = pool.take(), second = pool.take();
  BlockPool::Block others;
  std::jthread([&] { others = pool.take(); }).join();
  for (const BlockPool::Block& block : {first, second, others}) pool.give(block);
  EXPECT_EQ(pool.take().data, second.data);
  EXPECT_EQ(pool.take().data, first.data);
  EXPECT_EQ(pool.take().data, others.data);  // before memory that was never touched
}

TEST(BlockPool, KeepsTheMemoryOfSomeBlocksOnly) {
  BlockPool pool;
  std::vector<BlockPool::Block> blocks;
  for (size_t i = 0; i < BlockPool::kKept + 3; ++i) {
    blocks.push_back(pool.take());
    std::memset(blocks.back().data, 1, BlockPool::kBlock);
    ASSERT_EQ(in_memory(blocks.back()), BlockPool::kBlock);
  }
  for (const BlockPool::Block& block : blocks) pool.give(block);
  size_t kept = 0;
  for (const BlockPool::Block& block : blocks) kept += in_memory(block);
  EXPECT_EQ(kept, BlockPool::kKept * BlockPool::kBlock);
}

TEST(BlockPool, ServesSeveralThreads) {
  BlockPool pool;
  const auto work = [&pool](char mark) {
    for (int round = 0; round < 2000; ++round) {
      std::vector<BlockPool::Block> mine;
      for (int i = 0; i < 1 + round % 5; ++i) {
        mine.push_back(pool.take());
        mine.back().data[round] = mark;
      }
      for (const BlockPool::Block& block : mine) {
        ASSERT_EQ(block.data[round], mark);
        pool.give(block);
      }
    }
  };
  std::vector<std::jthread> threads;
  for (const char mark : {'a', 'b', 'c'}) threads.emplace_back(work, mark);
}

}  // namespace
}  // namespace megalith
