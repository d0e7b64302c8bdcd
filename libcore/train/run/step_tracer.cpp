#include "libcore/train/run/step_tracer.h"

#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/train/step/run_trace.h"

namespace megalith {

StepTracer::StepTracer(const ObservedRun& run, Trainer& trainer)
    : train_(run.config.train), world_(run.world), trainer_(trainer), start_(run.start) {}

void StepTracer::before_step(int64_t iteration) {
  trainer_.set_traced(iteration >= train_.trace_begin && iteration < train_.trace_end);
}

void StepTracer::end(const EndReport& end) {
  if (end.lost) return;
  if (end.iteration <= train_.trace_begin || start_ >= train_.trace_end)
    warn("--trace ", train_.trace, " holds no step: the run's were ", start_ + 1, " to ", end.iteration,
         ", --profile-step-start is ", train_.trace_begin, ", --profile-step-end ", train_.trace_end);
  const Coord& at = trainer_.groups().at;
  write_run_trace(train_.trace, world_,
                  concat("rank ", world_.rank(), ": tensor ", at.tensor, ", context ", at.context, ", data ",
                         at.data, ", pipeline ", at.pipeline),
                  trainer_.take_trace());
}

}  // namespace megalith
