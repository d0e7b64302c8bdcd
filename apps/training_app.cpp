#include "apps/training_app.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "apps/app.h"
#include "apps/manual_notes.h"
#include "libcore/base/log.h"
#include "libcore/io/files/file.h"
#include "libcore/launch/restarts.h"
#include "libcore/plan/device/machine.h"
#include "libcore/train/ranks/nccl_log.h"
#include "libcore/train/ranks/rank_device.h"
#include "libcore/train/saves/earlier_run.h"

namespace megalith {
namespace {

// Exit code of a run that a signal ended: "try again", since its state is saved and the run can be resumed.
constexpr int kTryAgain = exit_code(ErrorKind::kComm);
constexpr double kStopLimit = 5;  // seconds after which a stopped rank counts as dead, with --restarts

std::string worker_log_path(const std::string& folder, int rank) {
  return concat(folder, "/workerlog.", rank);
}

const char* variable(const char* name) {
  return std::getenv(name);
}

/// Whether this is a rank that was started again.
bool is_restarted() {
  const char* const start = variable(kStartedHere);
  return start && start != std::string_view("1");
}

/// Opens workerlog.N in `folder`, which is created if needed. An existing file is replaced, unless an earlier
/// start of the same run wrote it.
LogFile worker_log(const std::string& folder, int rank) {
  make_directories(folder);
  const std::string path = worker_log_path(folder, rank);
  const int file = open_to_append(path);
  // EINVAL: a device, which has no size
  if (!is_restarted() && ::ftruncate(file, 0) != 0 && errno != EINVAL)
    fail(ErrorKind::kIo, path, ": cannot be emptied: ", std::strerror(errno), "; give another --log-dir");
  return {.descriptor = file, .path = path, .times = false};
}

/// Sends this process's log lines to workerlog.N in `folder`; those of rank 0 also go to stdout.
void keep_log(const std::string& folder, int rank) {
  add_log_file(worker_log(folder, rank));
  if (rank > 0) set_log_console(LogConsole::kNone);
}

void measure_machine(TrainConfig& train) {
  const Accelerator machine = measure_this_machine();
  train.machine_flops = train.bf16 || train.fp16 ? machine.half_flops : machine.float_flops;
}

/// The exit code of a program that a signal stopped.
int stopped_code() {
  return variable(kStartedHere) ? kStoppedRank : kTryAgain;
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

/// By default CUDA loads a kernel at its first call. For that it may wait for the device, which may wait for
/// a rank that waits for this one. It reads the variable when it starts.
void load_kernels_early() {
  constexpr int kKeep = 0;
  ::setenv("CUDA_MODULE_LOADING", "EAGER", kKeep);
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
  options.add("Processes", launch_)
      .environment(thread_variables())
      .environment(
          {{"RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT",
            "What torchrun tells a rank. OMPI_COMM_WORLD_*, PMI_*, SLURM_*, PADDLE_* and RANK_TABLE_FILE "
            "with RANK_ID are understood, too."},
           {"MEGALITH_JOB_TOKEN",
            "A secret that all ranks of a job share: they prove to each other that they have it, and others "
            "are refused. Without it TORCHELASTIC_RUN_ID, else SLURM_JOB_ID, tells jobs apart, and proves "
            "nothing."},
           {"CUDA_VISIBLE_DEVICES",
            "The GPUs that a run may use: a rank for each with --nproc_per_node gpu."},
           {"GLOO_SOCKET_IFNAME", "The network interface of a rank; else the one that leads to rank 0."}})
      .environment(tokenizer_variables());
  if (another_speaks(variable)) silence_.emplace();
  const std::vector<const char*> words = with_named_file(argc_, argv_, argc_);
  return read_options(options, static_cast<int>(words.size()), words.data());
}

const LaunchPlan& TrainingApp::plan(ParallelConfig& parallel) {
  plan_ = plan_launch(launch_, parallel.nproc, variable,
                      std::chrono::steady_clock::now() + parallel.join_timeout());
  parallel.processes = plan_.world();
  threads_ = std::max(1, ParallelConfig::ranks_of(parallel.nproc));
  if (plan_.world() > 0) parallel.nproc = 0;  // --nproc only gave the number of ranks to start
  if (std::max(plan_.world(), threads_) > 1) load_kernels_early();
  return plan_;
}

RunFiles TrainingApp::files(const Options& options) const {
  RunFiles files;
  files.reads("--config", options.config_file());
  files.reads("--hostfile", launch_.hostfile);
  if (const char* const table = variable("RANK_TABLE_FILE")) files.reads("RANK_TABLE_FILE", table);
  if (!launch_.log_dir) return files;
  const int first = plan_.rank ? plan_.rank->rank : 0;
  const int ranks = plan_.rank ? 1 : plan_.server ? plan_.world() : threads_;
  for (int rank = first; rank < first + ranks; ++rank)
    files.writes("--log-dir", worker_log_path(*launch_.log_dir, rank), OutputKind::kStream);
  return files;
}

int TrainingApp::start_ranks(const Run& run) {
  RankCommand command{.program = "/proc/self/exe", .arguments = {argv_, argv_ + argc_}};
  if (launch_.restarts == 0) return run_server_ranks(*plan_.server, command, stop_).code;
  check_restarts(launch_.restarts, run);
  command.stop_limit = kStopLimit;
  return run_restarted_ranks(*plan_.server, command, restart_rules(launch_.restarts, run), stop_);
}

/// Refuses a --distributed-backend that cannot carry the tensors of the run's ranks, or says what carries
/// them in its place.
void TrainingApp::check_transport(const std::string& device, int rank) const {
  const int ranks = plan_.rank ? plan_.rank->world : threads_;
  const bool on_gpus = device == "cuda" && ranks > 1;
  const bool share = on_gpus && !plan_.rank && threads_share_device();
  if (on_gpus && launch_.transport == Transport::kGloo)
    fail(ErrorKind::kUsage, "--distributed-backend gloo and --device cuda contradict each other: ",
         share ? "the tensors of ranks that share a device stay in its memory"
               : "the tensors of GPUs go over NCCL",
         "; leave out --distributed-backend, or give --device cpu");
  if (share && launch_.transport == Transport::kNccl)
    fail(
        ErrorKind::kUsage,
        "--distributed-backend nccl and ranks that share a device contradict each other: NCCL takes one rank "
        "for each device; leave out --distributed-backend, or let CUDA_VISIBLE_DEVICES name ",
        ranks, " devices");
  if (!on_gpus && launch_.transport == Transport::kNccl && rank == 0)
    log("--distributed-backend nccl is for GPUs: messages between processes go over gloo");
}

int TrainingApp::run(const Options& options, const Run& run) {
  silence_.reset();
  if (plan_.server) return start_ranks(run);
  const int rank = plan_.rank ? plan_.rank->rank : 0;
  if (launch_.log_dir) keep_log(*launch_.log_dir, rank);
  if (!run.train.log_file.empty() && rank == 0)
    add_log_file({.descriptor = open_to_append(run.train.log_file), .path = run.train.log_file});
  if (options.given("distributed-backend")) check_transport(run.train.device, rank);
  const bool several = plan_.rank ? plan_.rank->world > 1 : threads_ > 1;
  if (several && rank == 0 && run.train.device == "cuda") keep_nccl_log();
  if (run.train.log_throughput && rank == 0) measure_machine(run.train);
  std::optional<LaunchedRank> launched;
  if (plan_.rank) launched = {.launch = *plan_.rank, .logs = rank == 0 || launch_.log_dir.has_value()};
  ThreadLog thread_log;
  if (!plan_.rank && launch_.log_dir)
    thread_log = [&](int thread) { return sink_to_file(worker_log(*launch_.log_dir, thread)); };
  const PretrainResult result = run.body(stop_, launched, thread_log);
  if (result.stopped_by.empty()) {
    check_log_files();
    return 0;
  }
  tell(run.name, ": stopped by ", result.stopped_by, "; ", after_stop(result, run));
  return stopped_code();
}

}  // namespace megalith
