#include "libcore/train/pretrain.h"

#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <variant>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/config/vocab_padding.h"
#include "libcore/data/indexed/token_check.h"
#include "libcore/data/samples/batch_sampler.h"
#include "libcore/data/samples/dataset_builder.h"
#include "libcore/data/samples/documents.h"
#include "libcore/launch/rank_world.h"
#include "libcore/parallel/topology.h"
#include "libcore/text/formats/tokenizer_files.h"

namespace megalith {
// Megatron's line of that name.
void log_world(const ParallelConfig& parallel) {
  log("using world size: ", parallel.world, ", data-parallel size: ", parallel.data,
      ", context-parallel size: ", parallel.context, ", tensor-model-parallel size: ", parallel.tensor,
      ", pipeline-model-parallel size: ", parallel.pipeline);
}

namespace {

/// Null when none is asked for. Sets the vocabulary's size.
std::unique_ptr<Tokenizer> open_tokenizer(PretrainConfig& config) {
  const TokenizerConfig& files = config.tokenizer;
  if (files.type.empty()) return nullptr;
  log("> building ", files.type, " tokenizer ...");
  std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(tokenizer_files(files, config.model.vocab_size));
  const int64_t size = tokenizer->vocab_size();
  if (config.model.vocab_size > 0 && config.model.vocab_size != size && tokenizer->name() != "NullTokenizer")
    fail(ErrorKind::kUsage, "--vocab-size ", config.model.vocab_size, " is not the tokenizer's, ", size,
         "; leave it out");
  config.model.vocab_size = size;
  return tokenizer;
}

/// The dataset that a sample is from, and its number there: "corpus: sample 7 of split train".
std::string origin_of(const TrainingDataset& data, int64_t index) {
  const GptDataset* from = std::get_if<GptDataset>(&data.source());
  if (const auto* blend = std::get_if<BlendedDataset>(&data.source())) {
    const auto at = static_cast<size_t>(index);
    from = &blend->datasets()[static_cast<size_t>(blend->index().dataset[at])];
    index = blend->index().sample[at];
  }
  return concat(from->data().prefix(), ": sample ", index, " of split ", from->spec().name);
}

/// What was checked at the start is the sidecar or an earlier scan; the .bin may have been changed since.
void require_known_ids(const TrainingDataset& data, int64_t index, const SampleView& sample,
                       int64_t vocab_size) {
  for (const std::span<const int32_t> ids : {sample.tokens, sample.labels})
    for (const int32_t id : ids)
      if (id < 0 || id >= vocab_size)
        fail(ErrorKind::kData, origin_of(data, index), " holds the id ", id, ", the vocabulary has ",
             vocab_size, " (0 to ", vocab_size - 1,
             "); the .bin was changed after it was written: compare it with megalith-data verify");
}

/// What a sample is told about its documents.
struct DocumentRules {
  bool told_apart = false, mask_loss = false;
  int32_t eod = 0;
};

DataSet data_set_of(const std::optional<TrainingDataset>& data, int64_t vocab_size,
                    const DocumentRules& documents) {
  if (!data) return {};
  return {.read =
              [&data, vocab_size, documents](int64_t index, const SampleView& out) {
                data->get(index, out);
                require_known_ids(*data, index, out, vocab_size);
                if (documents.told_apart) mark_documents(out, documents.eod, documents.mask_loss);
              },
          .size = data->size()};
}

/// Throws Stopped when a stop is asked for: tokens that nobody counted yet may be many.
TrainingDatasets open_data(const PretrainConfig& config) {
  log("> building train, validation, and test datasets for GPT ...");
  const TrainConfig& train = config.train;
  const OpenBlend blend = open_blend(config.data.data_path);
  for (const IndexedDataset& data : blend.datasets) {
    check_token_ids(data, config.model.vocab_size, config.data.cache);
    stop_if_asked();
  }
  const auto [train_samples, valid_samples, test_samples] =
      requested_samples({.train_iters = *train.iters,
                         .global_batch = train.global_batch,
                         .train_samples = train.samples,
                         .eval_interval = train.eval_interval,
                         .eval_iters = train.eval_iters});
  log(" > datasets target sizes (minimum size):");
  log("    train:      ", train_samples);
  log("    validation: ", valid_samples);
  log("    test:       ", test_samples);
  TrainingDatasets data = build_datasets(blend, {.split = config.data.split,
                                                 .seq_length = config.model.seq_length,
                                                 .seed = static_cast<uint32_t>(train.seed),
                                                 .samples = {train_samples, valid_samples, test_samples}});
  log("> finished creating GPT datasets ...");
  return data;
}

/// Tokenizer and data of a run, opened; then `run` trains with them.
template <class Run>
PretrainResult with_data(PretrainConfig config, const Run& run) {
  log_world(config.parallel);
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(config);
  log_padded_vocab(config.model.vocab_size, config.model.padded_vocab());
  const TrainingDatasets data = open_data(config);
  const int64_t vocab = config.model.vocab_size;
  DocumentRules documents{.told_apart = config.data.marks_documents(),
                          .mask_loss = config.data.eod_mask_loss};
  if (documents.told_apart) documents.eod = tokenizer->eod();
  return run(config,
             DataSets{.train = data_set_of(data[0], vocab, documents),
                      .valid = data_set_of(data[1], vocab, documents),
                      .test = data_set_of(data[2], vocab, documents)},
             tokenizer.get());
}

}  // namespace

Json agreed_options(const PretrainConfig& config) {
  PretrainConfig shared = config;
  shared.train.threads = 0;
  shared.train.tensorboard = shared.train.log_json = shared.train.report = "";
  shared.data.cache = "";
  return to_json(shared);
}

namespace {

void log_ranks(const RankWorld& ranks, const Topology& topology, const std::string& device) {
  for (size_t i = 0; i < ranks.places.size(); ++i) {
    const RankPlace& place = ranks.places[i];
    const Coord at = topology.coord(static_cast<int>(i));
    log(" > rank ", i, ": ", place.host, " (", place.address, "), ", device, " with ", place.cpus.size(),
        place.cpus.size() == 1 ? " core" : " cores", ", tensor ", at.tensor, ", pipeline ", at.pipeline,
        ", data ", at.data,
        topology.size(Axis::kContext) > 1 ? concat(", context ", at.context) : std::string());
  }
}

/// One rank among processes.
PretrainResult meet_and_run(const PretrainConfig& config, const Json& agreed, const Launch& launch,
                            const RankBody& body) {
  const RankWorld ranks = enter_rank_world({.launch = launch,
                                            .options = agreed,
                                            .meeting = config.parallel.meeting_timeout(),
                                            .wait = config.parallel.peer_timeout()});
  log_ranks(ranks, Topology(config.parallel, launch.world), config.train.device);
  try {
    return body(ProcessRank{.world = *ranks.comm,
                            .ranks_here = ranks_beside(ranks.places, launch.rank),
                            .cpu_share = cpu_share(ranks.places, launch.rank)});
  } catch (const Stopped& stopped) {
    ranks.comm->abort(concat("stopped by ", stopped.name, " before the first step"));
    throw;
  } catch (const std::exception& error) {
    ranks.comm->abort(error.what());
    throw;
  }
}

}  // namespace

PretrainResult as_rank(const PretrainConfig& config, const Json& agreed,
                       const std::optional<LaunchedRank>& rank, const RankBody& body) try {
  if (!rank || rank->launch.world == 1) return body(std::nullopt);
  mute_this_thread(!rank->logs);
  try {
    return meet_and_run(config, agreed, rank->launch, body);
  } catch (const Error& error) {
    mute_this_thread(false);
    throw Error(error.kind(), concat("rank ", rank->launch.rank, ": ", error.what()));
  }
} catch (const Stopped& stopped) {
  return {.stopped_by = std::string(stopped.name)};
}

PretrainResult pretrain(PretrainConfig config, const StopSignal& stop,
                        const std::optional<LaunchedRank>& rank) {
  const Json agreed = agreed_options(config);
  return as_rank(config, agreed, rank, [&](const std::optional<ProcessRank>& process) {
    return with_data(config, [&](const auto&... run) {
      return process ? train(run..., stop, *process) : train(run..., stop);
    });
  });
}

}  // namespace megalith
