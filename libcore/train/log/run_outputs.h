#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "libcore/config/train_config.h"
#include "libcore/io/files/file.h"
#include "libcore/io/run/held_output.h"

namespace megalith {

/// The path of the file with a run's figures: --log-json or, if only a report is requested, a file next to
/// the report, which is drawn from the figures. Empty if there is no such file, for example because the
/// report goes to a device or FIFO.
std::string metrics_path(const TrainConfig&);

/// The files that the first rank of a run writes besides checkpoints: figures, report, trace. Keeps them
/// locked as long as it exists. Throws what HeldOutput throws and, if there is a report, what check_figures()
/// throws.
class RunOutputs {
 public:
  explicit RunOutputs(const TrainConfig&);
  /// The file to which the figures are written: metrics_path(), or a temporary file if only a report needs
  /// the figures. Empty: the figures are not written.
  const std::string& metrics() const { return metrics_; }
  /// The number of runs whose figures were in that file before, if there is a report.
  size_t earlier_runs() const { return earlier_runs_; }

 private:
  /// Folder of the temporary file; removed, since it is never committed.
  std::optional<AtomicDirectory> aside_;
  std::string metrics_;
  size_t earlier_runs_ = 0;
  HeldOutput held_metrics_, held_report_, held_trace_;
};

}  // namespace megalith
