#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "apps/ranks_app.h"
#include "libcore/config/checkpoint_config.h"
#include "libcore/config/train_config.h"
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

/// The common part of the programs that train. It either starts ranks, or trains as one of them or as all.
class TrainingApp : public RanksApp {
 public:
  using RanksApp::RanksApp;

  /// As RanksApp::read(); the command line may name a run file without --config (with_named_file()).
  bool read(Options& options);

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
  int start_ranks_of(const Run& run);

  const StopSignal stop_;
};

}  // namespace megalith
