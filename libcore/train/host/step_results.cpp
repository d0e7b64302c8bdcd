#include "libcore/train/host/step_results.h"

#include <cstdlib>
#include <new>

#include "libcore/base/error.h"
#include "libcore/ops/backend/backend.h"

namespace megalith {
namespace {

/// A page of its own, since whole pages are locked.
Memory page() {
  constexpr size_t kPage = 4096;
  void* const block = std::aligned_alloc(kPage, kPage);
  if (!block) throw std::bad_alloc();
  return {.data = {block, [](void* p) { std::free(p); }}, .bytes = kPage};
}

}  // namespace

StepResults::StepResults(const Stream& compute)
    : compute_(compute),
      memory_(page()),
      copies_(dynamic_cast<LateCopies*>(&compute.backend())),
      locked_(copies_ ? copies_->lock_pages(memory_.data.get(), memory_.bytes) : nullptr),
      drain_(compute) {
  static_assert(kMost * sizeof(Scalars) <= 4096);
  auto* const scalars = static_cast<Scalars*>(memory_.data.get());
  for (size_t i = 0; i < kMost; ++i) places_[i] = {.scalars = new (scalars + i) Scalars{}};
}

void StepResults::put(ConstView scalars) {
  if (waiting() == kMost)
    fail(ErrorKind::kInternal, "results of a step: those of ", kMost, " steps before it were not read");
  Place& to = place(put_++);
  if (!late()) return compute_.to_host(to.scalars->data(), scalars);
  copies_->copy_out(compute_, to.scalars->data(), scalars);
  to.done = compute_.record();
}

StepResults::Scalars StepResults::take() {
  if (waiting() == 0) fail(ErrorKind::kInternal, "results of a step: no step is waiting");
  Place& from = place(taken_++);
  if (late()) copies_->await(compute_, from.done);
  return *from.scalars;
}

}  // namespace megalith
