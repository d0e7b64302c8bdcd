#include "libcore/train/pretrain.h"

#include <array>
#include <exception>
#include <memory>
#include <optional>
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
#include "libcore/launch/rank_world.h"
#include "libcore/parallel/topology.h"
#include "libcore/text/formats/tokenizer_files.h"
#include "libcore/train/data/text_data.h"
#include "libcore/train/dry_run.h"
#include "libcore/train/mock_data.h"

namespace megalith {
namespace {

// Megatron's line of that name.
void log_world(const ParallelConfig& parallel) {
  log("using world size: ", parallel.world, ", data-parallel size: ", parallel.data,
      ", context-parallel size: ", parallel.context, ", tensor-model-parallel size: ", parallel.tensor,
      ", pipeline-model-parallel size: ", parallel.pipeline);
}

/// Null when none is asked for. Sets the vocabulary's size.
std::unique_ptr<Tokenizer> open_tokenizer(PretrainConfig& config) {
  const TokenizerConfig& files = config.tokenizer;
  if (files.type.empty()) return nullptr;
  log("> building ", files.type, " tokenizer ...");
  std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(tokenizer_files(files, config.model.vocab_size));
  const int64_t size = tokenizer->vocab_size();
  if (files.of_model && size <= config.model.vocab_size) return tokenizer;
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

/// Samples of one time through the data; of a blend, whose parts end at different times, 0.
int64_t epoch_of(const TrainingDataset& data) {
  const GptDataset* one = std::get_if<GptDataset>(&data.source());
  return one ? one->size() / one->index().epochs : 0;
}

DataSet data_set_of(const std::optional<TrainingDataset>& data, int64_t vocab_size) {
  if (!data) return {};
  return {.read =
              [&data, vocab_size](int64_t index, const SampleView& out) {
                data->get(index, out);
                require_known_ids(*data, index, out, vocab_size);
              },
          .size = data->size(),
          .epoch = epoch_of(*data)};
}

/// Training samples of one epoch. kUsage for a blend by weights, which has none.
int64_t samples_of_an_epoch(const OpenBlend& blend, const PretrainConfig& config, const std::string& split) {
  if (!blend.blend.weights.empty())
    fail(ErrorKind::kUsage, "--num-epochs ", *config.train.epochs,
         " with weights in --data-path: their datasets end at different times; give --train-iters");
  const TrainingDatasets data = build_datasets(blend, {.split = split,
                                                       .seq_length = config.model.seq_length,
                                                       .seed = static_cast<uint32_t>(config.train.seed)});
  return data[0] ? data[0]->size() : 0;
}

/// Samples to ask of train, valid and test.
std::array<int64_t, 3> wanted_samples(const TrainConfig& train) {
  const std::array<int64_t, 3> samples = requested_samples({.train_iters = *train.iters,
                                                            .global_batch = train.global_batch,
                                                            .train_samples = train.samples,
                                                            .eval_interval = train.eval_interval,
                                                            .eval_iters = train.eval_iters});
  log(" > datasets target sizes (minimum size):");
  log("    train:      ", samples[0]);
  log("    validation: ", samples[1]);
  log("    test:       ", samples[2]);
  return samples;
}

/// Throws Stopped when a stop is asked for: tokens that nobody counted yet may be many.
OpenBlend open_checked(const std::vector<std::string>& data_path, const PretrainConfig& config) {
  OpenBlend blend = open_blend(data_path);
  for (const IndexedDataset& data : blend.datasets) {
    check_token_ids(data, config.model.vocab_size, config.data.cache);
    stop_if_asked();
  }
  return blend;
}

TrainingDatasets open_data(PretrainConfig& config) {
  log("> building train, validation, and test datasets for GPT ...");
  const DatasetRequest request{.split = config.data.split,
                               .seq_length = config.model.seq_length,
                               .seed = static_cast<uint32_t>(config.train.seed)};
  const auto asked = [&] {
    DatasetRequest with_samples = request;
    const std::array<int64_t, 3> samples = wanted_samples(config.train);
    with_samples.samples = {samples[0], samples[1], samples[2]};
    return with_samples;
  };
  TrainingDatasets data;
  if (config.data.has_own_paths()) {
    const std::array paths = {&config.data.train_path, &config.data.valid_path, &config.data.test_path};
    std::array<std::optional<OpenBlend>, 3> blends;
    for (size_t part = 0; part < paths.size(); ++part)
      if (!paths[part]->empty()) blends[part] = open_checked(*paths[part], config);
    if (config.train.epochs && blends[0])
      config.train.set_epoch_steps(samples_of_an_epoch(*blends[0], config, "1,0,0") /
                                   config.train.global_batch);
    const DatasetRequest whole = asked();
    for (size_t part = 0; part < paths.size(); ++part)
      if (blends[part]) data[part] = build_whole(*blends[part], whole, part);
  } else {
    const OpenBlend blend = open_checked(config.data.data_path, config);
    if (config.train.epochs)
      config.train.set_epoch_steps(samples_of_an_epoch(blend, config, config.data.split) /
                                   config.train.global_batch);
    data = build_datasets(blend, asked());
  }
  log("> finished creating GPT datasets ...");
  return data;
}

/// Tokenizer and data of a run, opened; then `run` trains with them.
template <class Run>
PretrainResult with_data(PretrainConfig config, const Run& run) {
  log_world(config.parallel);
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(config);
  log_padded_vocab(config.model.vocab_size, config.model.padded_vocab());
  if (config.data.reads_texts()) {
    const TextData texts(config, *tokenizer);
    return run(config, texts.sets(), tokenizer.get());
  }
  const int64_t vocab = config.model.vocab_size;
  if (config.data.mock) {
    const auto eod = tokenizer ? tokenizer->eod() : static_cast<int32_t>(vocab - 1);
    return run(config,
               mock_data(vocab, eod, static_cast<uint32_t>(config.train.seed), wanted_samples(config.train)),
               tokenizer.get());
  }
  const TrainingDatasets data = open_data(config);
  return run(config,
             DataSets{.train = data_set_of(data[0], vocab),
                      .valid = data_set_of(data[1], vocab),
                      .test = data_set_of(data[2], vocab)},
             tokenizer.get());
}

/// What all ranks have to be given alike: not where a rank writes, nor how many cores its machine has.
Json agreed_options(const PretrainConfig& config) {
  PretrainConfig shared = config;
  shared.train.threads = 0;
  shared.train.tensorboard = shared.train.log_json = shared.train.report = shared.train.log_file = "";
  shared.data.cache = "";
  return to_json(shared);
}

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

PretrainResult pretrain_rank(PretrainConfig config, const StopSignal& stop, const Launch& launch,
                             const Settle& settle) {
  const RankWorld ranks = enter_rank_world({.launch = launch,
                                            .options = agreed_options(config),
                                            .meeting = config.parallel.meeting_timeout(),
                                            .wait = config.parallel.peer_timeout()});
  try {
    if (settle) config = settle(ranks.comm.get());
    log_ranks(ranks, Topology(config.parallel, launch.world), config.train.device);
    return with_data(config, [&](const auto&... run) {
      return train(run..., stop,
                   ProcessRank{.world = *ranks.comm,
                               .ranks_here = ranks_beside(ranks.places, launch.rank),
                               .cpu_share = cpu_share(ranks.places, launch.rank)});
    });
  } catch (const Stopped& stopped) {
    ranks.comm->abort(concat("stopped by ", stopped.name, " before the first step"));
    throw;
  } catch (const std::exception& error) {
    ranks.comm->abort(error.what());
    throw;
  }
}

}  // namespace

std::string describe_run(PretrainConfig config) {
  std::string text;
  with_data(std::move(config), [&](const auto&... run) {
    text = dry_run_text(run...);
    return PretrainResult();
  });
  return text;
}

PretrainResult pretrain(PretrainConfig config, const StopSignal& stop,
                        const std::optional<LaunchedRank>& rank, const Settle& settle) try {
  if (settle && (!rank || rank->launch.world == 1)) config = settle(nullptr);
  if (!rank || rank->launch.world == 1)
    return with_data(std::move(config), [&](const auto&... run) { return train(run..., stop); });
  mute_this_thread(!rank->logs);
  try {
    return pretrain_rank(std::move(config), stop, rank->launch, settle);
  } catch (const Error& error) {
    mute_this_thread(false);
    throw Error(error.kind(), concat("rank ", rank->launch.rank, ": ", error.what()));
  }
} catch (const Stopped& stopped) {
  return {.stopped_by = std::string(stopped.name)};
}

}  // namespace megalith
