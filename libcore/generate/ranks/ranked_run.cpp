#include "libcore/generate/ranks/ranked_run.h"

#include "libcore/base/log.h"
#include "libcore/io/streams/standard_streams.h"
#include "libcore/parallel/topology.h"
#include "libcore/train/ranks/rank_device.h"
#include "libcore/train/run/run_rules.h"

namespace megalith {
namespace {

constexpr const char* kShareMatrices =
    "give --tensor-model-parallel-size: its ranks share the matrices of a model that is too large for one";
constexpr const char* kLeaveOut = "leave it out: it says how a run trains";

constexpr WithdrawnOption kOnlyForTraining[] = {
    {"pipeline-model-parallel-size", kShareMatrices},
    {"num-layers-per-virtual-pipeline-stage", kShareMatrices},
    {"decoder-first-pipeline-num-layers", kShareMatrices},
    {"decoder-last-pipeline-num-layers", kShareMatrices},
    {"pipeline-layers", kShareMatrices},
    {"context-parallel-size", kShareMatrices},
    {"expert-model-parallel-size", kShareMatrices},
    {"sequence-parallel", kLeaveOut},
    {"use-distributed-optimizer", kLeaveOut},
    {"sharding", kLeaveOut},
    {"ddp-bucket-size", kLeaveOut},
    {"ddp-num-buckets", kLeaveOut},
};

/// What the code that training shares reads of a run.
PretrainConfig as_run(const GenerateConfig& config, const ParallelConfig& parallel) {
  PretrainConfig run;
  run.parallel = parallel;
  run.train.device = config.run.device;
  run.train.threads = config.run.threads;
  return run;
}

/// The options that must be the same on all ranks. The model may lie elsewhere on another machine, and the
/// first rank alone reads prompts and prints.
Json agreed_options(const GenerateConfig& config, const ParallelConfig& parallel) {
  GenerateConfig shared = config;
  shared.run.threads = 0;
  Json all(Json::Object{{"adapter", !config.model.adapter.empty()},
                        {"num-return-sequences", int64_t{config.prompt.sequences}}});
  for (const Json& group : {to_json(parallel), to_json(shared.sampling), to_json(shared.beams),
                            to_json(shared.end), to_json(shared.run)})
    for (const auto& [option, value] : group.as_object()) all.set(option, value);
  return all;
}

/// Returns false if nobody reads the texts any more.
bool generate_as(Communicator& world, const DevicePlace& place, const GenerateConfig& config,
                 const PretrainConfig& run) {
  limit_last_waits(run);
  const RankDevice device = open_rank_device(world, place, run);
  Communicator& all = device.world ? *device.world : world;
  const Coord at = Topology(run.parallel, all.size()).coord(all.rank());
  const auto tensor = all.split({"tensor", GroupRole::kTensor}, at.data, at.tensor);
  const GenerateRanks ranks{
      .parallel = run.parallel, .world = world, .tensor = *tensor, .backend = *device.backend};
  return run_generate(config, ranks);
}

}  // namespace

std::span<const WithdrawnOption> only_for_training_ranks() {
  return kOnlyForTraining;
}

void check_ranked(const GenerateConfig& config, const ParallelConfig& parallel, Problems& problems) {
  check_ranks(parallel, problems);
  if (parallel.world > 1 && config.prompt.conversation())
    problems.add(Opt{"chat"}, " without a file is a conversation, which one rank holds; give ", Opt{"chat"},
                 " a file, or start one rank");
  if (parallel.tensor > 1 && config.run.int8)
    problems.add(Opt{"int8"}, " and ", Opt{"tensor-model-parallel-size"}, ' ', parallel.tensor,
                 " contradict each other: a row is rounded as a whole; leave out one of them");
}

void generate_in_ranks(const GenerateConfig& config, const ParallelConfig& parallel,
                       const std::optional<LaunchedRank>& rank, const ThreadLog& thread_log) {
  const PretrainConfig run = as_run(config, parallel);
  bool read = true;  // by whoever reads stdout, where the first rank prints
  as_rank(run, agreed_options(config, parallel), rank, [&](const RankWorld* ranks) -> PretrainResult {
    log("generating in ", parallel.world, " ranks: tensor-model-parallel size ", parallel.tensor,
        ", data-parallel size ", parallel.data);
    if (!ranks) {
      run_ranks_here(run, thread_log, [&](Communicator& world) {
        const bool mine = generate_as(world, {.number = world.rank()}, config, run);
        if (world.rank() == 0) read = mine;
      });
      return {};
    }
    log_ranks(*ranks, run);
    const ProcessRank here = process_rank(*ranks);
    take_cpu_share(run, here);
    read = generate_as(here.world, here.place, config, run);
    return {};
  });
  if (!read) throw ReaderGone(ErrorKind::kIo, "stdout: its reader has gone");
}

}  // namespace megalith
