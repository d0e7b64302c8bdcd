#include "libcore/train/run/loop.h"

#include <algorithm>
#include <cstdlib>

#include "libcore/base/log.h"
#include "libcore/base/machine/numa.h"
#include "libcore/base/machine/proc.h"
#include "libcore/base/text.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "libcore/threads/last_wait.h"
#include "libcore/train/run/train_run.h"

namespace megalith {
namespace {

/// A call that has waited for a rank in vain needs up to this much longer to name that rank to the others.
/// The end of its thread is waited for that long, too.
constexpr std::chrono::seconds kToNameTheRank(4);

/// Keeps rank `rank` of this machine's `ranks`, which is the calling thread, and its `threads` threads on one
/// node of a machine with several memories. A rank that computes on a GPU is left alone: its memory is not
/// the CPUs', and the node that is near its GPU may be another one.
void stay_near_memory(const PretrainConfig& config, int rank, int ranks, int threads) {
  if (config.train.device != "cpu") return;
  const std::optional<NumaNode> node = node_of_rank(numa_nodes(), rank, ranks, threads);
  if (!node) return;
  const bool stays = stay_on(*node);
  if (rank == 0 && stays) log("each rank stays on the CPUs of one NUMA node, whose memory it uses");
  if (!stays)
    warn("the system keeps rank ", rank, " of this machine from staying on NUMA node ", node->number);
}

}  // namespace

int threads_of_a_rank(const PretrainConfig& config, int share) {
  if (config.train.threads > 0) return config.train.threads;
  if (const char* chosen = std::getenv("OMP_NUM_THREADS"))
    if (const auto threads = parse_int(chosen); threads && *threads > 0) return static_cast<int>(*threads);
  return std::max(1, share);
}

void limit_last_waits(const PretrainConfig& config) {
  set_last_wait_limit(config.parallel.peer_timeout() + kToNameTheRank);
}

PretrainResult train_rank(const RankInput& input) {
  limit_last_waits(input.config);
  return TrainRun(input).go();
}

void run_ranks_here(const PretrainConfig& config, const ThreadLog& thread_log,
                    const std::function<void(Communicator& world)>& body) {
  // The ranks of this process share the machine's cores.
  const int threads = threads_of_a_rank(config, usable_cpus() / config.parallel.world);
  const auto run = [&](Communicator& world) {
    stay_near_memory(config, world.rank(), world.size(), threads);
    set_cpu_threads(threads);
    body(world);
  };
  if (config.parallel.world == 1) return run(*make_self_comm());
  run_thread_ranks(config.parallel.world, {.timeout = config.parallel.peer_timeout()},
                   [&](Communicator& world) {
                     mute_this_thread(world.rank() > 0);
                     if (thread_log && world.rank() > 0) set_muted_sink(thread_log(world.rank()));
                     run(world);
                   });
}

void take_cpu_share(const PretrainConfig& config, const ProcessRank& rank) {
  const int share = rank.cpu_share, threads = threads_of_a_rank(config, share);
  stay_near_memory(config, rank.place.number, rank.ranks_here, threads);
  set_cpu_threads(threads);
  if (config.train.threads == 0 && threads < share)
    warn("OMP_NUM_THREADS=", threads, " in the environment (torchrun sets it to 1) leaves ", share - threads,
         " of each rank's ", share, " cores idle; give --threads ", share);
}

PretrainResult train(const PretrainConfig& config, const DataSets& data, const Tokenizer* tokenizer,
                     const StopSignal& stop, const ThreadLog& thread_log, const Tuning* tuning) {
  PretrainResult result;
  run_ranks_here(config, thread_log, [&](Communicator& world) {
    const PretrainResult mine =
        train_rank({config, data, tokenizer, stop, world, 0, tuning, {.number = world.rank()}});
    if (world.rank() == 0) result = mine;
  });
  return result;
}

PretrainResult train(const PretrainConfig& config, const DataSets& data, const Tokenizer* tokenizer,
                     const StopSignal& stop, const ProcessRank& rank, const Tuning* tuning) {
  take_cpu_share(config, rank);
  return train_rank({config, data, tokenizer, stop, rank.world, rank.ranks_here, tuning, rank.place});
}

}  // namespace megalith
