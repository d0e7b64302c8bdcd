// The table of bench_gpu_kernels, which counts the work of a step, beside an estimate that was made by
// formulas alone, before the kernels were written (gpu-roofline, 2026-11-23). Both assume the same rates.
#include <array>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "bench/gpu_step/step_table.h"

namespace megalith {
namespace {

TEST(GpuStep, OfCountedWorkTakesWhatFormulasEstimated) {
  // tokens per second, by stage
  const std::map<std::string, std::array<double, 5>> estimates = {
      {"gpt2-124m", {505862, 543678, 555053, 573418, 580071}},
      {"gpt2-1.5b", {49443, 52412, 53289, 55383, 55432}},
      {"llama-7b", {13086, 13992, 14160, 14766, 14767}}};
  for (const GpuModel& model : gpu_models()) {
    size_t number = 0;
    for (const GpuStage stage : kGpuStages) {
      if (stage == GpuStage::kNoEpilogues) continue;  // no stage of the estimate
      const double tokens = 1 / step_time(model, stage).seconds,
                   estimate = estimates.at(model.name)[number++];
      RecordProperty(std::string(model.name) + " " + name_of(stage), std::to_string(tokens));
      EXPECT_NEAR(tokens / estimate, 1, 0.05) << model.name << ", " << name_of(stage) << ": " << tokens;
    }
  }
}

}  // namespace
}  // namespace megalith
