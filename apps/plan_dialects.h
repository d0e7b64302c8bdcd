#pragma once

#include <algorithm>
#include <string_view>
#include <utility>

#include "libcore/dialects/megatron/fates.h"
#include "libcore/dialects/mindformers/run_file.h"
#include "libcore/dialects/paddle/paddle_config.h"
#include "libcore/plan/request/plan_command.h"

namespace megalith {

/// The number of data-parallel ranks by PaddleNLP's names, for PlanCommand::data_ranks.
inline std::pair<const char*, int> data_ranks_of(const PaddleNames& paddle) {
  return {"--sharding-parallel-degree", std::max(paddle.sharding_degree.value_or(0), 0)};  // -1: all
}

/// What the plans of a command may be: sizes that it leaves open are searched.
inline RunKind planned_kind(const PlanCommand& command, const Options& options) {
  const auto searched = [&](const char* size, int value) { return value > 1 || !options.given(size); };
  return {.context = searched("context-parallel-size", command.parallel.context),
          .experts = command.model.has_experts(),
          .narrow = !command.plan.fp8_format.empty() || !command.plan.fp4_format.empty(),
          .interleaved = searched("pipeline-model-parallel-size", command.parallel.pipeline)};
}

/// Other tools' names for the planner's options: training scripts are planned with only the executable
/// replaced.
struct PlanDialects {
  PaddleConfig paddle;
  MindFormersRun mindformers;

  /// `command` is what `options` are read into.
  void add_to(Options& options, const PlanCommand& command) {
    options.add("PaddleNLP's names", paddle).add("MindFormers", mindformers).translate(translate_mindformers);
    options.fates(fates_in(kAutoplan), [&options, &command](std::string_view kind) {
      return planned_kind(command, options).has(kind);
    });
  }
  /// PlanCommand::check() with these names' values applied.
  void check(PlanCommand& command, Options& options) const {
    command.model_folder = paddle.model;
    command.data_ranks = data_ranks_of(paddle);
    command.check(options, {"PaddleNLP's names", "MindFormers"});
  }
};

}  // namespace megalith
