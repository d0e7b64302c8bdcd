#pragma once

#include <optional>
#include <string>

#include "libcore/config/train_config.h"
#include "libcore/io/files/file.h"
#include "libcore/io/run/held_output.h"

namespace megalith {

/// The file in which a run's figures stay: --log-json, or beside the report, which is drawn from them. Empty:
/// there is none; beside a report that is a device or FIFO, say, no file belongs.
std::string metrics_path(const TrainConfig&);

/// What the first rank of a run writes beside checkpoints (figures, report, trace), held from the run's
/// beginning to its end. Throws as HeldOutput, and as check_figures() for a report's.
class RunOutputs {
 public:
  explicit RunOutputs(const TrainConfig&);
  /// Where the figures go; metrics_path(), or, for a report that wants them all the same, a file that is
  /// removed at the end. Empty: nowhere.
  const std::string& metrics() const { return metrics_; }

 private:
  std::optional<AtomicDirectory> aside_;  // never committed: removed with what is in it
  std::string metrics_;
  HeldOutput held_metrics_, held_report_, held_trace_;
};

}  // namespace megalith
