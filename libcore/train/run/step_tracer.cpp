#include "libcore/train/run/step_tracer.h"

#include <algorithm>
#include <map>
#include <string>

#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/train/step/run_trace.h"

namespace megalith {

StepTracer::StepTracer(const ObservedRun& run, Trainer& trainer)
    : train_(run.config.train), world_(run.world), trainer_(trainer), start_(run.start) {}

void StepTracer::before_step(int64_t iteration) {
  const bool traced = iteration >= train_.trace_begin && iteration < train_.trace_end;
  trainer_.set_traced(traced);
  if (traced) ++steps_;
}

OpTable StepTracer::ops() {
  if (trainer_.traced_ops().empty()) return {};
  const std::map<std::string, Trace::Entry> ops = trainer_.traced_ops();  // without those that follow
  trainer_.set_traced(false);
  const RunShape& run = trainer_.shape();
  constexpr int64_t kMostRows = 4096;
  RoofShapes shapes{
      .rows = std::min<int64_t>(int64_t{run.model.seq_length} * run.train.micro_batch, kMostRows),
      .in = run.model.hidden,
      .out = run.model.ffn_hidden,
      .dtype = model_dtype(train_)};
  for (const Param& param : trainer_.params().all())
    if (param.value && param.global.rank >= 2 && param.value.elements() > shapes.matrix.elements())
      shapes.matrix = param.value;
  return {ops, measure_roofs(trainer_.stream(), shapes), steps_};
}

void StepTracer::end(const EndReport& end) {
  if (end.lost) return;
  if (end.iteration <= train_.trace_begin || start_ >= train_.trace_end)
    warn("--trace ", train_.trace, " holds no step: the run's were ", start_ + 1, " to ", end.iteration,
         ", --profile-step-start is ", train_.trace_begin, ", --profile-step-end ", train_.trace_end);
  const OpTable ops = this->ops();
  if (world_.rank() == 0 && !ops.rows.empty())
    for (const std::string& line : split(std::string(trim(ops.text())), '\n')) log(line);
  const Coord& at = trainer_.groups().at;
  write_run_trace(train_.trace, world_,
                  concat("rank ", world_.rank(), ": tensor ", at.tensor, ", context ", at.context, ", data ",
                         at.data, ", pipeline ", at.pipeline),
                  trainer_.take_trace(), ops.rows.empty() ? std::string() : to_json(ops).dump());
}

}  // namespace megalith
