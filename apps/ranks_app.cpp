#include "apps/ranks_app.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "apps/app.h"
#include "apps/manual_notes.h"
#include "libcore/io/files/file.h"
#include "libcore/launch/server_ranks.h"
#include "libcore/train/ranks/nccl_log.h"
#include "libcore/train/ranks/rank_device.h"

namespace megalith {
namespace {

const char* variable(const char* name) {
  return std::getenv(name);
}

std::string worker_log_path(const std::string& folder, int rank) {
  return concat(folder, "/workerlog.", rank);
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

/// By default CUDA loads a kernel at its first call. For that it may wait for the device, which may wait for
/// a rank that waits for this one. It reads the variable when it starts.
void load_kernels_early() {
  constexpr int kKeep = 0;
  ::setenv("CUDA_MODULE_LOADING", "EAGER", kKeep);
}

}  // namespace

bool RanksApp::read(Options& options, const std::vector<const char*>& words,
                    std::span<const WithdrawnOption> withdrawn) {
  options.add("Processes", launch_)
      .withdraw(withdrawn)
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
  return read_options(options, static_cast<int>(words.size()), words.data());
}

const LaunchPlan& RanksApp::plan(ParallelConfig& parallel) {
  plan_ = plan_launch(launch_, parallel.nproc, variable,
                      std::chrono::steady_clock::now() + parallel.join_timeout());
  parallel.processes = plan_.world();
  threads_ = std::max(1, ParallelConfig::ranks_of(parallel.nproc));
  if (plan_.world() > 0) parallel.nproc = 0;  // --nproc only gave the number of ranks to start
  if (std::max(plan_.world(), threads_) > 1) load_kernels_early();
  return plan_;
}

RunFiles RanksApp::files(const Options& options) const {
  RunFiles files;
  files.reads("--config", options.config_file());
  files.reads("--hostfile", launch_.hostfile);
  if (const char* const table = variable("RANK_TABLE_FILE")) files.reads("RANK_TABLE_FILE", table);
  if (!launch_.log_dir) return files;
  const int first = first_rank();
  const int ranks = plan_.rank ? 1 : plan_.server ? plan_.world() : threads_;
  for (int rank = first; rank < first + ranks; ++rank)
    files.writes("--log-dir", worker_log_path(*launch_.log_dir, rank), OutputKind::kStream);
  return files;
}

RankCommand RanksApp::command() const {
  return {.program = "/proc/self/exe", .arguments = {argv_, argv_ + argc_}};
}

int RanksApp::start_ranks(const StopSignal& stop) {
  speak();
  return run_server_ranks(server(), command(), stop).code;
}

/// Refuses a --distributed-backend that cannot carry the tensors of the run's ranks, or says what carries
/// them in its place.
void RanksApp::check_transport(const std::string& device) const {
  const int ranks = this->ranks();
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
  if (!on_gpus && launch_.transport == Transport::kNccl && first_rank() == 0)
    log("--distributed-backend nccl is for GPUs: messages between processes go over gloo");
}

RanksApp::Entered RanksApp::enter(const Options& options, const std::string& device,
                                  const std::string& log_file) {
  speak();
  const int rank = first_rank();
  if (launch_.log_dir) keep_log(*launch_.log_dir, rank);
  if (!log_file.empty() && rank == 0)
    add_log_file({.descriptor = open_to_append(log_file), .path = log_file});
  if (options.given("distributed-backend")) check_transport(device);
  if (ranks() > 1 && rank == 0 && device == "cuda") keep_nccl_log();
  Entered entered;
  if (plan_.rank) entered.rank = {.launch = *plan_.rank, .logs = rank == 0 || launch_.log_dir.has_value()};
  if (!plan_.rank && launch_.log_dir)
    entered.thread_log = [folder = *launch_.log_dir](int thread) {
      return sink_to_file(worker_log(folder, thread));
    };
  return entered;
}

}  // namespace megalith
