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
size_t in_memory(char* block) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> there(BlockPool::kBlock / page);
  if (::mincore(block, BlockPool::kBlock, there.data()) != 0) return 0;
  size_t bytes = 0;
  for (const unsigned char is : there) bytes += (is & 1) * page;
  return bytes;
}

TEST(BlockPool, LendsEachBlockToOneAtATime) {
  BlockPool pool;
  std::set<char*> blocks;
  for (size_t i = 0; i < 200; ++i) {  // more than one mapping
    char* const block = pool.take();
    for (char* const other : blocks) ASSERT_GE(std::abs(block - other), ptrdiff_t{BlockPool::kBlock});
    std::memset(block, static_cast<int>(i), BlockPool::kBlock);
    blocks.insert(block);
  }
  for (char* const block : blocks) pool.give(block);
  for (size_t i = 0; i < 200; ++i) EXPECT_EQ(blocks.erase(pool.take()), 1U);
}

TEST(BlockPool, TakesFirstWhatWasGivenLast) {
  BlockPool pool;
  char* const first = pool.take();
  char* const second = pool.take();
  pool.give(first);
  pool.give(second);
  EXPECT_EQ(pool.take(), second);
  EXPECT_EQ(pool.take(), first);
}

TEST(BlockPool, KeepsTheMemoryOfSomeBlocksOnly) {
  BlockPool pool;
  std::vector<char*> blocks;
  for (size_t i = 0; i < BlockPool::kKept + 3; ++i) {
    blocks.push_back(pool.take());
    std::memset(blocks.back(), 1, BlockPool::kBlock);
    ASSERT_EQ(in_memory(blocks.back()), BlockPool::kBlock);
  }
  for (char* const block : blocks) pool.give(block);
  size_t kept = 0;
  for (char* const block : blocks) kept += in_memory(block);
  EXPECT_EQ(kept, BlockPool::kKept * BlockPool::kBlock);
}

TEST(BlockPool, ServesSeveralThreads) {
  BlockPool pool;
  const auto work = [&pool](char mark) {
    for (int round = 0; round < 2000; ++round) {
      std::vector<char*> mine;
      for (int i = 0; i < 1 + round % 5; ++i) {
        mine.push_back(pool.take());
        mine.back()[round] = mark;
      }
      for (char* const block : mine) {
        ASSERT_EQ(block[round], mark);
        pool.give(block);
      }
    }
  };
  std::vector<std::jthread> threads;
  for (const char mark : {'a', 'b', 'c'}) threads.emplace_back(work, mark);
}

}  // namespace
}  // namespace megalith
