#include "libcore/train/host/step_results.h"

#include "libcore/base/error.h"
#include "libcore/ops/backend/backend.h"

namespace megalith {

StepResults::StepResults(const Stream& compute)
    : compute_(compute),
      memory_(kMost * sizeof(Scalars), HugePages::Backing::kReserved),
      copies_(dynamic_cast<LateCopies*>(&compute.backend())),
      locked_(copies_ ? copies_->lock_pages(memory_.as<Scalars>().data(), kMost * sizeof(Scalars)) : nullptr),
      drain_(compute) {
  for (size_t i = 0; i < kMost; ++i) places_[i] = {.scalars = &memory_.as<Scalars>()[i]};
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
