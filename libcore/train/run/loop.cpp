#include "libcore/train/run/loop.h"

#include <algorithm>
#include <cstdlib>

#include "libcore/base/log.h"
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

}  // namespace

int threads_of_a_rank(const PretrainConfig& config, int share) {
  if (config.train.threads > 0) return config.train.threads;
  if (const char* chosen = std::getenv("OMP_NUM_THREADS"))
    if (const auto threads = parse_int(chosen); threads && *threads > 0) return static_cast<int>(*threads);
  return std::max(1, share);
}

PretrainResult train_rank(const RankInput& input) {
  set_last_wait_limit(input.config.parallel.peer_timeout() + kToNameTheRank);
  return TrainRun(input).go();
}

PretrainResult train(const PretrainConfig& config, const DataSets& data, const Tokenizer* tokenizer,
                     const StopSignal& stop, const ThreadLog& thread_log, const Tuning* tuning) {
  // The ranks of this process share the machine's cores.
  const int threads = threads_of_a_rank(config, usable_cpus() / config.parallel.world);
  const auto run = [&](Communicator& world) {
    set_cpu_threads(threads);
    return train_rank({config, data, tokenizer, stop, world, 0, tuning, {.number = world.rank()}});
  };
  if (config.parallel.world == 1) return run(*make_self_comm());
  PretrainResult result;
  run_thread_ranks(config.parallel.world, {.timeout = config.parallel.peer_timeout()},
                   [&](Communicator& world) {
                     mute_this_thread(world.rank() > 0);
                     if (thread_log && world.rank() > 0) set_muted_sink(thread_log(world.rank()));
                     const PretrainResult mine = run(world);
                     if (world.rank() == 0) result = mine;
                   });
  return result;
}

PretrainResult train(const PretrainConfig& config, const DataSets& data, const Tokenizer* tokenizer,
                     const StopSignal& stop, const ProcessRank& rank, const Tuning* tuning) {
  const int threads = threads_of_a_rank(config, rank.cpu_share);
  set_cpu_threads(threads);
  if (config.train.threads == 0 && threads < rank.cpu_share)
    warn("OMP_NUM_THREADS=", threads, " in the environment (torchrun sets it to 1) leaves ",
         rank.cpu_share - threads, " of each rank's ", rank.cpu_share, " cores idle; give --threads ",
         rank.cpu_share);
  return train_rank({config, data, tokenizer, stop, rank.world, rank.ranks_here, tuning, rank.place});
}

}  // namespace megalith
