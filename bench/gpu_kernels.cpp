// bench_gpu_kernels: the time that a training step of three models would take on one H200 in bf16, from
// counted work and assumed rates (gpu_step/step_table.h): nothing here is measured.
// Prints a JSON object for each op of a model, then one for its step without epilogues, with today's code and
// with each gain that is still to come.
#include <cstdio>

#include "bench/gpu_step/step_table.h"

namespace megalith {
namespace {

void print_ops(const GpuModel& model) {
  const StepTime step = step_time(model, GpuStage::kOwnAttention);
  for (const OpTime& op : step.ops)
    std::printf(
        "{\"model\": \"%s\", \"part\": \"%s\", \"op\": \"%s\", \"calls\": %lld, \"bytes_per_token\": %.0f, "
        "\"flops_per_token\": %.0f, \"ns_per_token\": %.2f}\n",
        model.name, op.part.c_str(), op.op.c_str(), static_cast<long long>(op.calls), op.bytes, op.flops,
        1e9 * op.seconds);
}

void print_step(const GpuModel& model, GpuStage stage) {
  const StepTime step = step_time(model, stage);
  std::printf(
      "{\"model\": \"%s\", \"stage\": \"%s\", \"optimizer_ns\": %.1f, \"token_ns\": %.1f, "
      "\"tokens_per_second\": %.0f, \"mfu_full\": %.3f}\n",
      model.name, name_of(stage), 1e9 * step.optimizer, 1e9 * step.seconds, 1 / step.seconds, step.mfu);
}

}  // namespace
}  // namespace megalith

int main() {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  for (const GpuModel& model : gpu_models()) {
    print_ops(model);
    for (const GpuStage stage : kGpuStages) print_step(model, stage);
  }
  return 0;
}
