#define MEGALITH_CUDA_RUNTIME "tests/ops/emulated_cuda.h"

#include "tests/ops/emulated_cuda.h"

#include <gtest/gtest.h>

#include "libcore/ops/cuda/cuda_backend.h"
#include "tests/ops/cases.h"

namespace megalith::test {
namespace {

/// Whether the case runs here. It does not if the backend refuses it or if cuBLASLt would compute its
/// product; the backend itself handles products with k = 0.
bool is_emulated(const OpCase& c) {
  if (refused_by_cuda(c)) return false;
  return !c.name.starts_with("gemm") || c.name.find("no depth") != std::string::npos ||
         c.name.find("no rows") != std::string::npos;
}

/// An op's results with the threads of a block run in one of two orders.
std::vector<Outcome> outcomes(const OpCase& c, Bed& bed, bool backwards) {
  EmulatedBlock::running().backwards = backwards;
  std::vector<Outcome> result = c.run(bed);
  EmulatedBlock::running().backwards = false;
  return result;
}

TEST(EmulatedCuda, AgreesWithTheReference) {
  const std::unique_ptr<Backend> backend = cuda::make_backend(0);
  Stream stream = backend->make_stream();
  for (const OpCase& c : op_cases()) {
    if (!is_emulated(c)) continue;
    Bed bed(stream);
    for (const Outcome& outcome : outcomes(c, bed, false)) EXPECT_EQ(disagreement(outcome), "") << c.name;
  }
}

// A missing barrier gives wrong results in one of the two orders.
TEST(EmulatedCuda, DoesNotDependOnTheOrderOfThreads) {
  const std::unique_ptr<Backend> backend = cuda::make_backend(0);
  Stream stream = backend->make_stream();
  for (const OpCase& c : op_cases()) {
    if (!is_emulated(c)) continue;
    Bed first(stream, false), second(stream, false);
    const std::vector<Outcome> forwards = outcomes(c, first, false), backwards = outcomes(c, second, true);
    ASSERT_EQ(forwards.size(), backwards.size());
    for (size_t i = 0; i < forwards.size(); ++i)
      EXPECT_EQ(forwards[i].got, backwards[i].got) << c.name << " " << forwards[i].what;
  }
}

/// Tests everything in the backend but its ops: memory, copies, streams, events.
class EmulatedCudaStream : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = cuda::make_backend(0);
  Stream stream_ = backend_->make_stream();
};

TEST_F(EmulatedCudaStream, FillsConvertsAndAddsEveryDtype) {
  Bed bed(stream_);
  for (const int64_t n : {0, 1, 70001}) {
    for (const DType dtype : {DType::kF32, DType::kBf16, DType::kI32, DType::kI64, DType::kF64}) {
      const View view = bed.empty(dtype, {n});
      stream_.fill(view, -3);
      EXPECT_EQ(bed.get(view), Values(static_cast<size_t>(n), -3.0)) << name_of(dtype);
    }
    const Memory half = backend_->allocate(static_cast<size_t>(n) * 2);
    const View narrow{half.data.get(), DType::kF16, {n}}, wide = bed.empty(DType::kF32, {n});
    stream_.fill(narrow, 1.5);
    stream_.add(narrow, narrow);
    stream_.copy(wide, narrow);
    EXPECT_EQ(bed.get(wide), Values(static_cast<size_t>(n), 3.0));
  }
  const View sum = bed.put(DType::kF32, {3}, {1, 2, 3});
  stream_.add(sum, bed.put(DType::kBf16, {3}, {0.5, 0.25, 8}));
  EXPECT_EQ(bed.get(sum), (Values{1.5, 2.25, 11}));
}

TEST_F(EmulatedCudaStream, TakesViewsThatStartAnywhere) {
  Bed bed(stream_);
  const View x = bed.put(DType::kBf16, {7, 1}, {1, 2, 3, 4, 5, 6, 7}),
             y = bed.put(DType::kBf16, {7, 1}, Values(7));
  stream_.add(y.rows(1, 7), x.rows(0, 6));
  EXPECT_EQ(bed.get(y), (Values{0, 1, 2, 3, 4, 5, 6}));
}

TEST_F(EmulatedCudaStream, SaysWhenThereIsNoMemory) {
  try {
    backend_->allocate(size_t{1} << 60);
    ADD_FAILURE() << "allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
  }
  EXPECT_NE(backend_->allocate(0).data, nullptr);
}

TEST_F(EmulatedCudaStream, RefusesWhatAContextParallelRankHas) {
  for (const OpCase& c : op_cases()) {
    if (!refused_by_cuda(c)) continue;
    Bed bed(stream_);
    try {
      c.run(bed);
      ADD_FAILURE() << c.name << " ran";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kDevice) << c.name;
      EXPECT_NE(std::string(error.what()).find("--context-parallel-size"), std::string::npos) << error.what();
    }
  }
}

TEST_F(EmulatedCudaStream, RefusesWiderHeadsAndForeignStreams) {
  Bed bed(stream_);
  const View qkv = bed.empty(DType::kF32, {1, 1, 1, 3, 257}), out = bed.empty(DType::kF32, {1, 1, 1, 257});
  try {
    run(stream_, Attention{.out = out, .qkv = qkv, .scale = 1});
    ADD_FAILURE() << "ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    EXPECT_NE(std::string(error.what()).find("257"), std::string::npos) << error.what();
  }
  Stream foreign(*backend_);
  EXPECT_THROW(foreign.fill(out, 0), Error);
}

TEST_F(EmulatedCudaStream, OrdersStreamsByEvents) {
  Stream other = backend_->make_stream();
  EXPECT_NE(other.native(), stream_.native());
  other.wait(stream_.record());
  other.wait(Event{});
  other.synchronize();
}

TEST_F(EmulatedCudaStream, CallsHostWorkAndKeepsItsError) {
  Stream queue = backend_->make_queue_stream();
  int done = 0;
  queue.enqueue([&] { ++done; });
  EXPECT_EQ(done, 1);
  queue.enqueue([] { fail(ErrorKind::kComm, "a peer failed"); });
  for (const auto& call :
       std::vector<std::function<void()>>{[&] { queue.synchronize(); }, [&] { queue.wait(Event{}); },
                                          [&] { queue.enqueue([&] { ++done; }); }})
    try {
      call();
      ADD_FAILURE() << "did not throw";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kComm);
    }
  EXPECT_EQ(done, 1);
  stream_.synchronize();  // does not throw: only the other stream has failed
}

TEST(EmulatedCudaChoice, RefusesADeviceThatIsNotThere) {
  for (const int device : {-1, 1}) {
    try {
      cuda::make_backend(device);
      ADD_FAILURE() << "made";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    }
  }
}

}  // namespace
}  // namespace megalith::test
