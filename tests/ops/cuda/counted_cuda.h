#pragma once

#include <memory>

#include <gtest/gtest.h>

#include "tests/ops/cases.h"
#include "tests/support/emulated_cuda.h"

namespace megalith::test {

/// What an op adds to the counts of the device (emulator::CallCounts).
struct CountedWork {
  double sectors, products, specials, conflicts;
};

/// A test of what ops ask of the emulated device that counts accesses to memory. Skipped where there is none:
/// a SetUp() of a derived class must return if IsSkipped().
template <class Parameter>
class CountedCuda : public testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    if (!has_counting_device()) GTEST_SKIP() << "a sanitizer takes the place of what counts";
    backend_ = make_counting_backend();
    stream_ = std::make_unique<Stream>(backend_->make_stream());
    bed_ = std::make_unique<Bed>(*stream_);
  }
  template <class Op>
  CountedWork work_of(const Op& op) {
    const emulator::CallCounts& counts = counting_controls().counts;
    stream_->synchronize();
    const emulator::CallCounts before = counts;
    run(*stream_, op);
    stream_->synchronize();
    const auto more = [&](emulator::Count emulator::CallCounts::*count) {
      return static_cast<double>(counts.*count - before.*count);
    };
    return {more(&emulator::CallCounts::sectors), more(&emulator::CallCounts::matrix_products),
            more(&emulator::CallCounts::special_functions), more(&emulator::CallCounts::bank_conflicts)};
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Bed> bed_;
};

}  // namespace megalith::test
