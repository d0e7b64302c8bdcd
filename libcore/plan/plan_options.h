#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libcore/config/checkpoint_config.h"
#include "libcore/config/cli.h"
#include "libcore/config/data_config.h"
#include "libcore/config/model_config.h"
#include "libcore/config/parallel_config.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/config/train_config.h"
#include "libcore/plan/search.h"

namespace megalith {

/// What only the planner asks.
struct PlanOptions {
  std::string gpu = "A100-SXM-80GB";
  std::optional<double> memory_gb;
  int64_t max_global_batch = 0;
  int top = 10;
  bool json = false;

  template <class V>
  void fields(V&& v) {
    v("gpu", gpu, "Kind of device, or \"local\" for this machine's processor.", metavar("NAME"));
    v("device-memory-gb", memory_gb, "Memory of a device in 1e9 bytes.", positive(),
      default_text("$DEVICE_MEMORY_GB, else the device's"));
    v("max-global-batch-size", max_global_batch,
      "Take the largest global batch up to this that a plan allows.", at_least(0),
      default_text("--global-batch-size exactly"));
    v("top", top, "Plans to print.", at_least(1));
    v("json", json, "Print one JSON object instead of tables.");
  }
};

/// Everything that `megalith-autoplan` reads: all of a training command, so that its script runs with the
/// executable swapped, and the planner's own. Only the groups named in check() matter to a plan.
struct PlanCommand {
  PlanOptions plan;
  ModelConfig model;
  ParallelConfig parallel;
  TrainConfig train;
  DataConfig data;
  CheckpointConfig checkpoint;
  TokenizerConfig tokenizer;

  void add_to(Options&);
  static void check(Options&);  // after reading: kUsage with every complaint
};

/// The problem of a command line. `given` says whether an option stands in it: those sizes are kept, the
/// others searched. kUsage when the batch or the devices are contradictory; kDevice when "local" cannot be
/// measured.
struct PlanRequest {
  PlanProblem problem;
  Fixed fixed;
};
PlanRequest plan_request(const PlanCommand&, const Options& given);

/// The answer as text or JSON. kUsage when nothing is legal or fits: then the text says what lacks.
std::string answer(const PlanCommand&, const PlanRequest&);

}  // namespace megalith
