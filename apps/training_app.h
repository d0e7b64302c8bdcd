#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "libcore/base/log.h"
#include "libcore/config/launch_config.h"
#include "libcore/config/parallel_config.h"
#include "libcore/config/train_config.h"
#include "libcore/io/run/run_files.h"
#include "libcore/io/run/stop_signal.h"
#include "libcore/launch/launch_plan.h"
#include "libcore/options/cli.h"
#include "libcore/train/run/pretrain.h"

namespace megalith {

/// What the programs that train have in common: they read a command line, find out which ranks they are or
/// have to start, and train as one of them.
class TrainingApp {
 public:
  TrainingApp(int argc, char** argv) : argc_(argc), argv_(argv) {}

  /// Adds the options of processes and what the manual page says of the environment, and reads the command
  /// line; false: --help or its like was printed. From here until run() a rank that is not the first keeps
  /// silent, because all ranks read one command line.
  bool read(Options& options);
  /// Finds out which ranks there are, and tells `parallel`; before options.check().
  const LaunchPlan& plan(ParallelConfig& parallel);
  /// What every such run reads and writes, for check_files(); after plan().
  RunFiles files(const Options& options) const;

  using Train =
      std::function<PretrainResult(const StopSignal&, const std::optional<LaunchedRank>&, const ThreadLog&)>;
  struct Run {
    std::string name;    // begins the line of a stop
    TrainConfig& train;  // is told what the machine computes, where the log is to say it
    bool saves;          // anywhere
    /// What the command lacks to go on from what was saved at an iteration; empty: nothing.
    std::function<std::string(int64_t iteration)> lacks;
    Train body;
  };
  /// Starts this server's ranks and waits for them, or trains as one rank (or as all, in threads); the exit
  /// code.
  int run(const Options& options, const Run& run);

 private:
  int argc_;
  char** argv_;
  const StopSignal stop_;
  std::optional<Muted> silence_;
  LaunchConfig launch_;
  LaunchPlan plan_;
  int threads_ = 1;  // ranks of this process, where it is alone
};

}  // namespace megalith
