#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/config/launch_config.h"
#include "libcore/config/parallel_config.h"
#include "libcore/io/run/run_files.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/launch/launch_plan.h"
#include "libcore/options/cli.h"
#include "libcore/train/run/pretrain.h"

namespace megalith {

/// The common part of the programs that run in ranks. It reads the command line, determines the ranks, and
/// either starts those of this server or prepares this process to be one of them, or all.
class RanksApp {
 public:
  RanksApp(int argc, char** argv) : argc_(argc), argv_(argv) {}

  /// Adds the options for processes and the manual page's section on the environment, and reads the command
  /// line. Returns false if --help or a similar option was printed. From here until enter(), only the first
  /// rank logs, since all ranks read the same command line. `withdrawn`: options for processes that the
  /// program refuses.
  bool read(Options& options, std::span<const WithdrawnOption> withdrawn) {
    return read(options, {argv_, argv_ + argc_}, withdrawn);
  }
  /// Finds out which ranks there are and enters them in `parallel`. To be called before options.check().
  const LaunchPlan& plan(ParallelConfig& parallel);
  /// The files that every run reads and writes, for check_files(). To be called after plan().
  RunFiles files(const Options& options) const;

  /// Whether this process only starts the ranks of its server.
  bool starts_ranks() const { return plan_.server.has_value(); }
  /// Starts this server's ranks and waits for them. Returns the exit code.
  int start_ranks(const StopSignal&);

  /// What a process that is a rank gives to as_rank(), and to train() for ranks that are threads.
  struct Entered {
    std::optional<LaunchedRank> rank;
    ThreadLog thread_log;
  };
  /// Opens the logs of this process's ranks, which compute on `device`. `log_file`: a further file for the
  /// lines of the first rank; may be empty. kUsage for a --distributed-backend that cannot carry the ranks'
  /// tensors.
  Entered enter(const Options&, const std::string& device, const std::string& log_file = {});

 protected:
  const LaunchConfig& launch() const { return launch_; }
  const ServerRanks& server() const { return *plan_.server; }
  RankCommand command() const;
  int argc() const { return argc_; }
  char** argv() const { return argv_; }
  /// read() of these words in place of the command line.
  bool read(Options& options, const std::vector<const char*>& words,
            std::span<const WithdrawnOption> withdrawn = {});
  /// From now on the process may log, whichever rank it is.
  void speak() { silence_.reset(); }

 private:
  /// The number of this process's first rank.
  int first_rank() const { return plan_.rank ? plan_.rank->rank : 0; }
  int ranks() const { return plan_.rank ? plan_.rank->world : threads_; }
  void check_transport(const std::string& device) const;

  int argc_;
  char** argv_;
  std::optional<Muted> silence_;
  LaunchConfig launch_;
  LaunchPlan plan_;
  int threads_ = 1;  // number of ranks, as threads, if this is the only process
};

}  // namespace megalith
