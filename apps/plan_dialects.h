#pragma once

#include <algorithm>
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

/// Other tools' names for the planner's options: training scripts are planned with only the executable
/// replaced.
struct PlanDialects {
  PaddleConfig paddle;
  MindFormersRun mindformers;

  /// `of`: the program whose command lines are planned.
  void add_to(Options& options, Program of) {
    options.add("PaddleNLP's names", paddle).add("MindFormers", mindformers).translate(translate_mindformers);
    options.fates(fates_in(of));
  }
  /// PlanCommand::check() with these names' values applied.
  void check(PlanCommand& command, Options& options) const {
    command.model_folder = paddle.model;
    command.data_ranks = data_ranks_of(paddle);
    command.check(options, {"PaddleNLP's names", "MindFormers"});
  }
};

}  // namespace megalith
