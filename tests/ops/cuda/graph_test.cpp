// Work that the CUDA backend records once and repeats, on the emulated device.
#include "libcore/ops/cuda/graph.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/ops/backend/recorded_work.h"
#include "tests/ops/cases.h"
#include "tests/support/emulated_cuda.h"

namespace megalith::test {
namespace {

class RecordedCudaWork : public testing::Test {
 protected:
  WorkRecorder& recorder() { return dynamic_cast<WorkRecorder&>(*backend_); }
  std::string error_of(const std::function<void()>& work) {
    try {
      recorder().record_work(stream_, work);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInternal);
      return error.what();
    }
    return "";
  }

  std::unique_ptr<Backend> backend_ = make_emulated_backend();
  Stream stream_ = backend_->make_stream();
  Bed bed_{stream_, false};
};

// The mask is that of the samples whose numbers are in memory when the work runs.
TEST_F(RecordedCudaWork, DrawsTheMaskOfTheSamplesInMemory) {
  constexpr int64_t kRows = 8, kBatch = 2, kColumns = 64;
  const Shape shape{kRows, kBatch, kColumns};
  const View x = bed_.put(DType::kF32, shape, Values(static_cast<size_t>(shape.elements()), 1.0)),
             y = bed_.empty(DType::kF32, shape), samples = bed_.put(DType::kI64, {kBatch}, Values{3, 4});
  const auto drop = [&] {
    run(stream_, Dropout{.y = y, .x = x, .key = {.p = 0.5f, .seed = 7, .samples = samples}});
  };
  const auto masks = [&](const std::function<void()>& enqueue) {
    std::vector<Values> all;
    for (const std::vector<int64_t>& numbers : {std::vector<int64_t>{3, 4}, {5, 9}, {3, 4}}) {
      stream_.from_host(samples, numbers.data());
      enqueue();
      all.push_back(bed_.get(y));
    }
    return all;
  };
  const std::vector<Values> eager = masks(drop);
  const WorkRecorder::Recorded recorded = recorder().record_work(stream_, drop);
  EXPECT_EQ(masks([&] { EXPECT_TRUE(recorder().repeat(stream_, recorded)); }), eager);
  EXPECT_EQ(eager[0], eager[2]);
  EXPECT_NE(eager[0], eager[1]);
}

// What was recorded would use a block that is freed.
TEST_F(RecordedCudaWork, IsNotRepeatedWithOtherScratchMemory) {
  const View x = bed_.put(DType::kF32, {4}, Values{1, 2, 3, 4}), sum = bed_.put(DType::kF64, {1}, Values{0});
  const auto add = [&] { run(stream_, ScaledSum{.out = sum, .x = x, .scale = 1}); };
  add();
  WorkRecorder::Recorded recorded = recorder().record_work(stream_, add);
  EXPECT_TRUE(recorder().repeat(stream_, recorded));
  EXPECT_EQ(bed_.get(sum), Values{20});
  backend_->reserve_scratch(stream_, size_t{64} << 20);
  EXPECT_FALSE(recorder().repeat(stream_, recorded));
  EXPECT_EQ(bed_.get(sum), Values{20});
  recorded = recorder().record_work(stream_, add);
  EXPECT_TRUE(recorder().repeat(stream_, recorded));
  EXPECT_EQ(bed_.get(sum), Values{30});
}

TEST_F(RecordedCudaWork, RefusesWhatItCouldNotRepeat) {
  const View x = bed_.put(DType::kF32, {4}, Values{1, 2, 3, 4});
  std::vector<float> host(4);
  EXPECT_NE(error_of([&] { stream_.from_host(x, host.data()); }).find("copy from the host"),
            std::string::npos);
  EXPECT_NE(error_of([&] { stream_.enqueue([] {}); }).find("work of the host"), std::string::npos);
  EXPECT_NE(error_of([&] { backend_->reserve_scratch(stream_, size_t{99} << 20); }).find("scratch memory"),
            std::string::npos);
  EXPECT_NE(error_of([&] { stream_.synchronize(); }).find("error 900"), std::string::npos);
  const Event before = stream_.record();
  EXPECT_NE(error_of([&] { stream_.wait(before); }).find("error 905"), std::string::npos);
  EXPECT_EQ(bed_.get(x), (Values{1, 2, 3, 4}));  // the stream works as before
}

// The error of the work goes to the caller, and the stream works again.
TEST_F(RecordedCudaWork, EndsWithTheErrorOfItsWork) {
  const View x = bed_.put(DType::kF32, {1}, Values{1});
  EXPECT_EQ(error_of([&] {
              stream_.fill(x, 2);
              fail(ErrorKind::kInternal, "no more");
            }),
            "no more");
  EXPECT_EQ(bed_.get(x), Values{1});
}

}  // namespace
}  // namespace megalith::test
