#include "libcore/plan/request/order_of_run.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/train/data/run_datasets.h"

namespace megalith {
namespace {

/// Whether the command says how long the run is and on which datasets.
bool says_what_is_read(const PlanCommand& command) {
  const TrainConfig& train = command.train;
  const DataConfig& data = command.data;
  const bool indexed = (!data.data_path.empty() || data.has_own_paths()) && !data.mock && !data.reads_texts();
  return indexed && !command.plan.tuning().finetunes && (train.iters || train.samples || train.epochs);
}

/// The run with the largest batch that a plan may choose.
PretrainConfig longest_run(const PlanRequest& request) {
  const PlanProblem& p = request.problem;
  PretrainConfig config;
  config.data = request.command.data;
  config.train = request.command.train;
  config.model.seq_length = p.model.seq_length;
  const int64_t most = std::numeric_limits<int>::max();  // which no run exceeds
  const int64_t batch = std::min(p.global_batch > 0 ? p.global_batch : p.max_global_batch, most);
  config.train.global_batch = static_cast<int>(batch);
  if (!config.train.iters)
    config.train.iters = config.train.samples ? (*config.train.samples - 1) / batch + 1 : 0;
  return config;
}

}  // namespace

std::optional<NodeOrder> order_of_run(const PlanRequest& request) {
  const PlanCommand& command = request.command;
  if (!says_what_is_read(command)) return std::nullopt;
  const bool several = !command.plan.local() && request.problem.machine.local_world > 1;
  try {
    const OwnOrder order = own_order(longest_run(request));
    return NodeOrder{.bytes = order.bytes,
                     .in_files = several || !command.data.cache.empty() || order.in_files};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kNoInput && error.kind() != ErrorKind::kUsage &&
        error.kind() != ErrorKind::kData)
      throw;
    log("the memory for the order of samples is not in the plan: ", error.what());
    return std::nullopt;
  }
}

}  // namespace megalith
