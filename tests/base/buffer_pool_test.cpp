#include "libcore/base/buffer_pool.h"

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace megalith {
namespace {

/// Bytes of a buffer that are in memory.
size_t in_memory(const BufferPool::Buffer& buffer) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> there(BufferPool::kBytes / page);
  if (::mincore(buffer.data, BufferPool::kBytes, there.data()) != 0) return 0;
  size_t bytes = 0;
  for (const unsigned char is : there) bytes += (is & 1) * page;
  return bytes;
}

TEST(BufferPool, LendsEachBlockToOneAtATime) {
  BufferPool pool;
  std::set<char*> buffers;
  for (size_t i = 0; i < 200; ++i) {  // more than one mapping
    char* const buffer = pool.take().data;
    for (char* const other : buffers) ASSERT_GE(std::abs(buffer - other), ptrdiff_t{BufferPool::kBytes});
    std::memset(buffer, static_cast<int>(i), BufferPool::kBytes);
    buffers.insert(buffer);
  }
  for (char* const buffer : buffers) pool.give({.data = buffer});
  for (size_t i = 0; i < 200; ++i) EXPECT_EQ(buffers.erase(pool.take().data), 1U);
}

TEST(BufferPool, TakesFirstWhatTheThreadHadAndWasGivenLast) {
  BufferPool pool;
  const BufferPool::Buffer first = pool.take(), second = pool.take();
  BufferPool::Buffer others;
  std::jthread([&] { others = pool.take(); }).join();
  for (const BufferPool::Buffer& buffer : {first, second, others}) pool.give(buffer);
  EXPECT_EQ(pool.take().data, second.data);
  EXPECT_EQ(pool.take().data, first.data);
  EXPECT_EQ(pool.take().data, others.data);  // before memory that was never touched
}

TEST(BufferPool, KeepsTheMemoryOfSomeBlocksOnly) {
  BufferPool pool;
  std::vector<BufferPool::Buffer> buffers;
  for (size_t i = 0; i < BufferPool::kKept + 3; ++i) {
    buffers.push_back(pool.take());
    std::memset(buffers.back().data, 1, BufferPool::kBytes);
    ASSERT_EQ(in_memory(buffers.back()), BufferPool::kBytes);
  }
  for (const BufferPool::Buffer& buffer : buffers) pool.give(buffer);
  size_t kept = 0;
  for (const BufferPool::Buffer& buffer : buffers) kept += in_memory(buffer);
  EXPECT_EQ(kept, BufferPool::kKept * BufferPool::kBytes);
}

TEST(BufferPool, ServesSeveralThreads) {
  BufferPool pool;
  const auto work = [&pool](char mark) {
    for (int round = 0; round < 2000; ++round) {
      std::vector<BufferPool::Buffer> mine;
      for (int i = 0; i < 1 + round % 5; ++i) {
        mine.push_back(pool.take());
        mine.back().data[round] = mark;
      }
      for (const BufferPool::Buffer& buffer : mine) {
        ASSERT_EQ(buffer.data[round], mark);
        pool.give(buffer);
      }
    }
  };
  std::vector<std::jthread> threads;
  for (const char mark : {'a', 'b', 'c'}) threads.emplace_back(work, mark);
}

}  // namespace
}  // namespace megalith
