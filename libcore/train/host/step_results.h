#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "libcore/base/machine/huge_pages.h"
#include "libcore/ops/backend/late_copies.h"
#include "libcore/ops/step_scalars.h"
#include "libcore/tensor/device.h"

namespace megalith {

/// The scalars of the steps whose results the host has not read yet, at most two. On a device that copies
/// late they come to page-locked memory in the order of the stream's work, so that the host can enqueue a
/// step before it waits for the one before. Elsewhere put() waits.
class StepResults {
 public:
  using Scalars = std::array<double, StepScalar::kCount>;

  /// `compute`: the stream of the steps.
  explicit StepResults(const Stream& compute);
  StepResults(const StepResults&) = delete;
  StepResults& operator=(const StepResults&) = delete;

  /// Whether put() returns before the step is done.
  bool late() const { return locked_ != nullptr; }
  /// The number of steps that were put and not taken.
  size_t waiting() const { return put_ - taken_; }
  /// Copies the scalars [StepScalar::kCount] f64 once the work enqueued so far is done. kInternal if two
  /// steps are waiting.
  void put(ConstView scalars);
  /// Waits until the earliest step that is waiting is done, but for no later one, and returns its scalars.
  /// kInternal if there is none.
  Scalars take();

 private:
  static constexpr size_t kMost = 2;
  struct Place {
    Scalars* scalars;
    Event done = {};
  };
  Place& place(size_t number) { return places_[number % kMost]; }

  Stream compute_;
  HugePages memory_;  // its page is locked, so it shares none with other memory
  LateCopies* copies_;
  std::shared_ptr<void> locked_;  // null: put() waits
  std::array<Place, kMost> places_;
  size_t put_ = 0, taken_ = 0;
  Drain drain_;  // waits for copies before the memory is freed
};

}  // namespace megalith
