#pragma once

#include <optional>
#include <string>

#include "libcore/config/train_config.h"
#include "libcore/io/files/file.h"
#include "libcore/io/run/held_output.h"

namespace megalith {

/// The file that keeps a run's figures: --log-json, or a file next to the report, which is drawn from them.
/// Empty: there is no such file, for example because the report goes to a device or FIFO.
std::string metrics_path(const TrainConfig&);

/// What the first rank of a run writes besides checkpoints (figures, report, trace); locked from the run's
/// beginning to its end. Errors are those of HeldOutput and, if there is a report, of check_figures().
class RunOutputs {
 public:
  explicit RunOutputs(const TrainConfig&);
  /// Where the figures go: metrics_path(), or a temporary file if only a report needs them. Empty: nowhere.
  const std::string& metrics() const { return metrics_; }

 private:
  std::optional<AtomicDirectory> aside_;  // never committed: removed with its contents
  std::string metrics_;
  HeldOutput held_metrics_, held_report_, held_trace_;
};

}  // namespace megalith
