#include "apps/training_app.h"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <utility>

#include "apps/app.h"
#include "libcore/base/log.h"
#include "libcore/io/file.h"

namespace megalith {
namespace {

// Exit code of a run that a signal ended: its state is saved, the same command goes on.
constexpr int kTryAgain = exit_code(ErrorKind::kComm);

/// The rank's lines go to workerlog.N of `folder`, those of rank 0 to stderr, too.
void keep_log(const std::string& folder, int rank) {
  make_directories(folder);
  const std::string path = concat(folder, "/workerlog.", rank);
  const auto file = std::make_shared<std::ofstream>(path, std::ios::trunc);
  if (!*file) fail(ErrorKind::kIo, path, ": cannot be written; give another --log-dir");
  set_log_sink([file, rank](const std::string& line) {
    *file << line << std::endl;
    if (rank == 0) std::cerr << line << std::endl;
  });
}

std::string after_stop(const PretrainResult& result, bool saves) {
  if (result.saved) return "saved; run the same command to go on";
  return saves ? "no step was done; run the same command again" : "nothing saved: there is no --save";
}

}  // namespace

bool TrainingApp::read(Options& options) {
  options.add("Processes", launch_);
  return read_options(options, argc_, argv_);
}

void TrainingApp::plan(ParallelConfig& parallel) {
  plan_ = plan_launch(launch_, parallel.nproc, [](const char* name) { return std::getenv(name); });
  parallel.processes = plan_.world();
  if (plan_.world() > 0) parallel.nproc = 0;  // it said how many to start
}

int TrainingApp::run(const Options& options, const std::string& name, bool saves, const Train& train) {
  if (plan_.server) return run_server_ranks(*plan_.server, "/proc/self/exe", {argv_, argv_ + argc_}, stop_);
  const int rank = plan_.rank ? plan_.rank->rank : 0;
  if (launch_.log_dir) keep_log(*launch_.log_dir, rank);
  if (options.given("distributed-backend") && launch_.transport == Transport::kNccl && rank == 0)
    log("--distributed-backend nccl is for GPUs: messages between processes go over gloo");
  std::optional<LaunchedRank> launched;
  if (plan_.rank) launched = {.launch = *plan_.rank, .logs = rank == 0 || launch_.log_dir.has_value()};
  const PretrainResult result = train(stop_, launched);
  if (result.stopped_by.empty()) return 0;
  log(name, ": stopped by ", result.stopped_by, "; ", after_stop(result, saves));
  return kTryAgain;
}

}  // namespace megalith
