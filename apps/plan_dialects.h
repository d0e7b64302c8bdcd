#pragma once

#include <algorithm>
#include <string_view>
#include <utility>

#include "libcore/dialects/megatron/fates.h"
#include "libcore/dialects/mindformers/run_file.h"
#include "libcore/dialects/paddle/paddle_config.h"
#include "libcore/plan/request/plan_command.h"

namespace megalith {

/// PaddleNLP's option for the number of data-parallel ranks and its value, or 0 if it leaves the number open.
/// For PlanCommand::data_ranks.
inline std::pair<const char*, int> data_ranks_of(const PaddleNames& paddle) {
  return {"--sharding-parallel-degree", std::max(paddle.sharding_degree.value_or(0), 0)};  // -1: all
}

/// The kinds of run that the plans of a command may describe. The planner chooses each size that the command
/// does not give, so such a size may exceed 1.
inline RunKind planned_kind(const PlanCommand& command, const Options& options) {
  const auto searched = [&](const char* size, int value) { return value > 1 || !options.given(size); };
  return {.context = searched("context-parallel-size", command.parallel.context),
          .experts = command.model.has_experts(),
          .narrow = !command.plan.fp8_format.empty() || !command.plan.fp4_format.empty(),
          .interleaved = searched("pipeline-model-parallel-size", command.parallel.pipeline)};
}

/// Lets the planner accept other tools' names for its options. A user can thus plan for a training script by
/// replacing only the executable.
struct PlanDialects {
  PaddleConfig paddle;
  MindFormersRun mindformers;

  /// Adds these names to `options`. `command` is the command that `options` fill in.
  void add_to(Options& options, const PlanCommand& command) {
    options.add("PaddleNLP's names", paddle).add("MindFormers", mindformers).translate(translate_mindformers);
    options.fates(
        [] { return fates_in(kAutoplan); },
        [&options, &command](std::string_view kind) { return planned_kind(command, options).has(kind); });
  }
  /// Applies the values of these names, then calls PlanCommand::check().
  void check(PlanCommand& command, Options& options) const {
    command.model_folder = paddle.model;
    command.data_ranks = data_ranks_of(paddle);
    command.check(options, {"PaddleNLP's names", "MindFormers"});
  }
};

}  // namespace megalith
