#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libcore/json/json.h"
#include "libcore/launch/environment.h"
#include "libcore/launch/rank_world.h"
#include "libcore/train/run/loop.h"

namespace megalith {

/// This process as one of several ranks.
struct LaunchedRank {
  Launch launch;
  bool logs = true;  // whether its lines are logged: true for rank 0 and for ranks with a log of their own
};

/// What a rank does after the ranks have connected. `ranks` is null when all ranks are threads of this
/// process.
using RankBody = std::function<PretrainResult(const RankWorld* ranks)>;
/// Connects to the other ranks, if there are any, and calls `body`. If `body` fails, tells the other ranks.
/// `agreed` must be equal on all ranks. `config` sets how long to wait for the others. If `body` throws
/// Stopped, as_rank() returns a result that says so.
PretrainResult as_rank(const PretrainConfig& config, const Json& agreed,
                       const std::optional<LaunchedRank>& rank, const RankBody& body);
/// This process as one of the connected ranks. `ranks` must outlive the result.
ProcessRank process_rank(const RankWorld& ranks);
/// Logs where each rank runs, and its position in the layout.
void log_ranks(const RankWorld& ranks, const PretrainConfig& config);

/// The options that must be the same on all ranks. Paths to read and write may differ between machines, and
/// so may the number of cores; they are not included.
Json agreed_options(const PretrainConfig&);
/// The log's line about where a run trains: "device: cpu, 8 threads". Each of the `ranks` has `threads`. On a
/// CPU the line also names the first of `gpus`, those that the run could use (nvidia_gpus()), and the option
/// for that.
std::string device_line(const std::string& device, int threads, int ranks,
                        const std::vector<std::string>& gpus);
/// Logs device_line(), on the CPU with the instruction set of its kernels, and then the sizes of the groups
/// of ranks in Megatron's words. `ranks` is null if all ranks are threads of this process.
void log_world(const PretrainConfig&, const RankWorld* ranks);

/// Completes the configuration after the ranks have connected. Every rank calls it and gets the same
/// configuration; rank 0 may plan the layout and send it to the others. `world` is null when all ranks are in
/// this process.
using Settle = std::function<PretrainConfig(Communicator* world)>;

/// The whole of apps/pretrain: connects to the other ranks if there are any, reads the tokenizer, opens and
/// checks the data, trains. `config` must be complete except for the vocabulary's size, which the tokenizer
/// sets, or `settle` completes it. A stop requested while the data are being opened takes effect before the
/// next data set is opened; one requested later takes effect after a step. If a rank fails, it tells the
/// others, which then end with kComm; its own message begins with its number, as in "rank 3: ". `thread_log`
/// is for ranks that are threads of this process.
PretrainResult pretrain(PretrainConfig config, const StopSignal& stop,
                        const std::optional<LaunchedRank>& rank = {}, const Settle& settle = {},
                        const ThreadLog& thread_log = {});

/// For --dry-run: opens tokenizer and data as a run does, and passes to `print` what the run would do
/// (dry_run_text()). Needs only one process for any number of ranks. Then throws kUsage, as the run would,
/// when a rank needs more than TrainConfig::device_memory.
void describe_run(PretrainConfig config, const std::function<void(const std::string&)>& print);

}  // namespace megalith
