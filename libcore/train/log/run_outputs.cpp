#include "libcore/train/log/run_outputs.h"

#include <filesystem>

#include "libcore/io/files/temporary_folder.h"
#include "libcore/train/log/report.h"

namespace megalith {

std::string metrics_path(const TrainConfig& train) {
  if (!train.log_json.empty() || train.report.empty()) return train.log_json;
  return is_stream(train.report) ? std::string() : train.report + ".jsonl";
}

RunOutputs::RunOutputs(const TrainConfig& train)
    : metrics_(metrics_path(train)),
      held_metrics_(metrics_),
      held_report_(train.report),
      held_trace_(train.trace) {
  if (train.report.empty()) return;
  if (!metrics_.empty()) {
    earlier_runs_ = check_figures(metrics_);
    return;
  }
  aside_.emplace(temporary_folder() / "megalith-report");
  metrics_ = (aside_->path() / "figures.jsonl").string();
}

}  // namespace megalith
