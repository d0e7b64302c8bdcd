#include "apps/training_app.h"

#include <cstdlib>
#include <vector>

#include "apps/app.h"
#include "libcore/base/log.h"
#include "libcore/launch/restarts.h"
#include "libcore/plan/device/machine.h"
#include "libcore/train/saves/earlier_run.h"

namespace megalith {
namespace {

// Exit code of a run that a signal ended: "try again", since its state is saved and the run can be resumed.
constexpr int kTryAgain = exit_code(ErrorKind::kComm);
constexpr double kStopLimit = 5;  // seconds after which a stopped rank counts as dead, with --restarts

void measure_machine(TrainConfig& train) {
  const Accelerator machine = measure_this_machine();
  train.machine_flops = train.bf16 || train.fp16 ? machine.half_flops : machine.float_flops;
}

/// The exit code of a program that a signal stopped.
int stopped_code() {
  return std::getenv(kStartedHere) ? kStoppedRank : kTryAgain;
}

std::string after_stop(const PretrainResult& result, const TrainingApp::Run& run) {
  if (result.saved) {
    const std::string options = run.options_to_resume(result.iteration).text();
    if (options.empty()) return "saved; run the same command to resume";
    return concat("saved; to resume, give ", options,
                  ": the same command would begin again where this run did");
  }
  return !run.checkpoint.save.empty() ? "no step was done; run the same command again"
                                      : "nothing saved: there is no --save";
}

/// kUsage if a restart could not resume by adding options to the command.
void check_restarts(int restarts, const TrainingApp::Run& run) {
  if (run.checkpoint.save.empty())
    fail(ErrorKind::kUsage, "--restarts ", restarts,
         " without --save: there would be no checkpoint to resume from; give --save and --save-interval");
  if (const std::string other = run.options_to_resume(1).in_place_of; !other.empty())
    fail(ErrorKind::kUsage, "--restarts ", restarts, " and ", other,
         " contradict each other: each restart would begin there again; give --load ", run.checkpoint.save);
}

RestartRules restart_rules(int restarts, const TrainingApp::Run& run) {
  return {.most = restarts,
          .new_checkpoint = [&run, seen = newest_checkpoint(run.checkpoint.save)]() mutable
          -> std::optional<std::vector<std::string>> {
            const auto newest = newest_checkpoint(run.checkpoint.save);
            if (!newest || newest == seen) return std::nullopt;
            seen = newest;
            return run.options_to_resume(newest->iteration).words;
          }};
}

}  // namespace

int run_training_app(const char* name, const std::function<int()>& body) {
  return run_app(name, [&] {
    try {
      return body();
    } catch (const Stopped& stopped) {
      tell(name, ": stopped by ", stopped.name, "; no step was done; run the same command again");
      return stopped_code();
    }
  });
}

bool TrainingApp::read(Options& options) {
  return RanksApp::read(options, with_named_file(argc(), argv(), argc()));
}

int TrainingApp::start_ranks_of(const Run& run) {
  speak();
  if (launch().restarts == 0) return start_ranks(stop_);
  check_restarts(launch().restarts, run);
  RankCommand restarted = command();
  restarted.stop_limit = kStopLimit;
  return run_restarted_ranks(server(), restarted, restart_rules(launch().restarts, run), stop_);
}

int TrainingApp::run(const Options& options, const Run& run) {
  if (starts_ranks()) return start_ranks_of(run);
  const Entered entered = enter(options, run.train.device, run.train.log_file);
  if (run.train.log_throughput && (!entered.rank || entered.rank->launch.rank == 0))
    measure_machine(run.train);
  const PretrainResult result = run.body(stop_, entered.rank, entered.thread_log);
  if (result.stopped_by.empty()) {
    check_log_files();
    return 0;
  }
  tell(run.name, ": stopped by ", result.stopped_by, "; ", after_stop(result, run));
  return stopped_code();
}

}  // namespace megalith
