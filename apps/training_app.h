#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "libcore/base/log.h"
#include "libcore/config/checkpoint_config.h"
#include "libcore/config/launch_config.h"
#include "libcore/config/parallel_config.h"
#include "libcore/config/train_config.h"
#include "libcore/io/run/run_files.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/launch/launch_plan.h"
#include "libcore/options/cli.h"
#include "libcore/train/run/pretrain.h"
#include "libcore/train/saves/start_point.h"

namespace megalith {

/// For --help: where the programs train, and how far that is proved (docs/cuda.md).
inline constexpr char kWhereItTrains[] =
    "It trains on CPUs, in many ranks on one machine or several. On GPUs\n"
    "(--device cuda) it has not run yet, only in an emulator.\n";

/// As run_app(), for a program that trains: a signal that comes before there is a run, while files are
/// opened, ends it as a signal before the first step does.
int run_training_app(const char* name, const std::function<int()>& body);

/// The common part of the programs that train. It reads the command line, determines the ranks of the run,
/// and either starts ranks or trains as one of them.
class TrainingApp {
 public:
  TrainingApp(int argc, char** argv) : argc_(argc), argv_(argv) {}

  /// Adds the options for processes and the manual page's section on the environment, and reads the command
  /// line. Returns false if --help or a similar option was printed. From here until run(), only the first
  /// rank logs, since all ranks read the same command line.
  bool read(Options& options);
  /// Finds out which ranks there are and enters them in `parallel`. To be called before options.check().
  const LaunchPlan& plan(ParallelConfig& parallel);
  /// The files that every training run reads and writes, for check_files(). To be called after plan().
  RunFiles files(const Options& options) const;

  using Train =
      std::function<PretrainResult(const StopSignal&, const std::optional<LaunchedRank>&, const ThreadLog&)>;
  struct Run {
    std::string name;    // begins the line that says that the run was stopped
    TrainConfig& train;  // receives this machine's measured speed if the log needs it
    const CheckpointConfig& checkpoint;
    /// Returns the options that must be added to the command to resume from what was saved at an iteration.
    std::function<OptionsToResume(int64_t iteration)> options_to_resume;
    Train body;
  };
  /// Starts this server's ranks and waits for them; if they fail and --restarts allows it, starts them again.
  /// Or trains as one rank. In a run of one process, trains as all ranks, in threads. Returns the exit code.
  int run(const Options& options, const Run& run);

 private:
  int start_ranks(const Run& run);
  void check_transport(const std::string& device, int rank) const;

  int argc_;
  char** argv_;
  const StopSignal stop_;
  std::optional<Muted> silence_;
  LaunchConfig launch_;
  LaunchPlan plan_;
  int threads_ = 1;  // number of ranks, as threads, if this is the only process
};

}  // namespace megalith
