#include "libcore/tensor/arena.h"

#include <cstdint>
#include <cstdlib>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

Memory block_of(size_t bytes) {
  return {{std::aligned_alloc(256, bytes), [](void* p) { std::free(p); }}, bytes};
}

TEST(Arena, AlignsEachTensor) {
  Arena arena("activations", block_of(4096));
  const View first = arena.make(DType::kF32, {3}, "first"),
             second = arena.make(DType::kBf16, {2, 5}, "second");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data) % 256, 0u);
  EXPECT_EQ(static_cast<std::byte*>(second.data) - static_cast<std::byte*>(first.data), 256);
  EXPECT_EQ(second.shape, (Shape{2, 5}));
  EXPECT_EQ(arena.mark(), 512u);
}

TEST(Arena, GivesTheSameMemoryAfterRewind) {
  Arena arena("activations", block_of(4096));
  const size_t mark = arena.mark();
  const View first = arena.make(DType::kF32, {100}, "first");
  arena.rewind(mark);
  EXPECT_EQ(arena.make(DType::kI32, {7}, "again").data, first.data);
  EXPECT_EQ(arena.peak(), 512u);
  EXPECT_THROW(arena.rewind(1024), Error);
}

TEST(Arena, SaysWhatDidNotFit) {
  Arena arena("gradients", block_of(512));
  arena.make(DType::kF32, {64}, "first");
  try {
    arena.make(DType::kF32, {65}, "second");
    ADD_FAILURE() << "fitted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    for (const char* part : {"gradients", "second", "[65]", "512 bytes", "256 of 512"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << " in " << error.what();
  }
}

TEST(Arena, OnlyMeasuresWhenCounting) {
  Arena arena = Arena::counting("activations");
  const View view = arena.make(DType::kF32, {1 << 20, 1 << 15}, "more than there is");
  EXPECT_TRUE(view);
  EXPECT_EQ(arena.peak(), size_t{1} << 37);
}

}  // namespace
}  // namespace megalith
