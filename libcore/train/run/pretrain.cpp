#include "libcore/train/run/pretrain.h"

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/machine/gpus.h"
#include "libcore/base/machine/isa.h"
#include "libcore/base/machine/proc.h"
#include "libcore/base/refusals.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/config/vocab_padding.h"
#include "libcore/data/indexed/token_check.h"
#include "libcore/data/samples/dataset_builder.h"
#include "libcore/data/samples/documents.h"
#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/together.h"
#include "libcore/parallel/topology.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "libcore/text/formats/null_tokenizer.h"
#include "libcore/train/data/mock_data.h"
#include "libcore/train/data/run_datasets.h"
#include "libcore/train/data/run_texts.h"
#include "libcore/train/data/token_data.h"
#include "libcore/train/devices/trained_where.h"
#include "libcore/train/run/dry_run.h"
#include "libcore/train/run/same_data.h"
#include "libcore/train/run/shared_indexes.h"
#include "libcore/train/saves/start_point.h"
#include "libcore/train/step/layout.h"
#include "libcore/train/step/memory_limits.h"

namespace megalith {
namespace {

/// The machine's GPUs if this version can train such a run on one.
std::vector<std::string> gpus_for(const PretrainConfig& config) {
  DeviceRun run = device_run(config);
  run.device = "cuda";
  return lacking_there(run).empty() ? nvidia_gpus() : std::vector<std::string>();
}

}  // namespace

void log_world(const PretrainConfig& config, const RankWorld* ranks) {
  const ParallelConfig& parallel = config.parallel;
  const int share = ranks ? cpu_share(ranks->places, ranks->comm->rank()) : usable_cpus() / parallel.world;
  const std::string where =
      device_line(config.train.device, threads_of_a_rank(config, share), parallel.world, gpus_for(config));
  const std::string kernels = concat(", kernels for ", name(chosen_isa()));
  log(where, config.train.device == "cpu" ? kernels : std::string());
  log("using world size: ", parallel.world, ", data-parallel size: ", parallel.data,
      ", context-parallel size: ", parallel.context, ", tensor-model-parallel size: ", parallel.tensor,
      ", pipeline-model-parallel size: ", parallel.pipeline);
}

std::string device_line(const std::string& device, int threads, int ranks,
                        const std::vector<std::string>& gpus) {
  const std::string unused = device == "cpu" && !gpus.empty()
                                 ? concat(" (", gpus.front(), " is here: --device cuda)")
                                 : std::string();
  return concat("device: ", device, ", ", threads, threads == 1 ? " thread" : " threads",
                ranks > 1 ? " a rank" : "", unused);
}

namespace {

/// Opens the configured tokenizer and sets the vocabulary's size. Null if none is configured.
std::unique_ptr<Tokenizer> open_tokenizer(PretrainConfig& config) {
  const TokenizerConfig& files = config.tokenizer;
  if (files.type.empty()) return nullptr;
  log("> building ", files.type, " tokenizer ...");
  std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(tokenizer_files(files, config.model.vocab_size));
  if (const std::string note = null_vocabulary_note(*tokenizer); !note.empty()) log(" > ", note);
  const int64_t size = tokenizer->vocab_size();
  if (files.of_model && size <= config.model.vocab_size) return tokenizer;
  if (config.model.vocab_size > 0 && config.model.vocab_size != size && tokenizer->name() != "NullTokenizer")
    fail(ErrorKind::kUsage, "--vocab-size ", config.model.vocab_size, " is not the tokenizer's, ", size,
         "; leave it out");
  config.model.vocab_size = size;
  return tokenizer;
}

/// Warns if the run tells documents apart, but they end without the token that it looks for.
void warn_of_missing_ends(const std::vector<IndexedDataset>& files, int32_t eod, const DataConfig& data) {
  std::vector<std::string> lacking, options;
  for (const IndexedDataset& file : files)
    if (!ends_documents(file, eod)) lacking.push_back(file.prefix());
  if (lacking.empty()) return;
  if (data.reset_position_ids) options.emplace_back("--reset-position-ids");
  if (data.reset_attention_mask) options.emplace_back("--reset-attention-mask");
  if (data.eod_mask_loss) options.emplace_back("--eod-mask-loss");
  warn(printable(lacking[0]),
       lacking.size() > 1 ? concat(" and ", lacking.size() - 1, " more") : std::string(),
       ": no document ends with the end token (id ", eod, "), which ", join(options, ", "),
       options.size() > 1 ? " look for" : " looks for",
       "; make the dataset again with megalith-preprocess --append-eod");
}

RunTokenizer named(const Tokenizer& tokenizer) {
  return {tokenizer.name(), tokenizer.hash()};
}

/// Creates the check of the datasets' tokenizers against the run's tokenizer. The check also compares them
/// with the tokenizer that the model of --load was trained with, except for a NullTokenizer: its ids have no
/// texts, so it fits every model.
TokenizerCheck tokenizer_check(const Tokenizer* tokenizer, const PretrainConfig& config) {
  TokenizerCheck check(tokenizer ? named(*tokenizer) : RunTokenizer{}, config.data.any_tokenizer);
  if (tokenizer && tokenizer->name() == "NullTokenizer") return check;
  const auto own = tokenizer_of_start(config.checkpoint, config.tokenizer);
  if (!own) return check;
  std::unique_ptr<Tokenizer> models;
  try {
    models = make_tokenizer(*own);
  } catch (const Error& error) {  // a Hugging Face model may have a tokenizer of an unknown type
    warn(config.checkpoint.load, ": its tokenizer cannot be compared: ", error.what());
    return check;
  }
  check.check_model(config.checkpoint.load, named(*models));
  return check;
}

constexpr size_t kValid = 1;  // of kSplitNames

/// Bytes of this machine's memory that the run takes beside its data, at least: a save's copy and the
/// evaluation of tasks are left out.
size_t memory_beside_data(const PretrainConfig& config) {
  RunShape run = run_shape(config);
  run.train.device = resolved_device(config.train.device);
  return machine_memory(run, config.parallel.local_world);
}

/// Logs the memory that the order of samples takes; refuses what does not fit before it is built.
void check_index_memory(const IndexMemory& memory, const PretrainConfig& config) {
  const auto text = [](size_t n) { return format_bytes(static_cast<double>(n)); };
  log("memory known before the run: order of samples ",
      memory.held > 0 ? text(memory.held) : std::string("in files"),
      memory.building > 0 ? concat(", ", text(memory.building), " while it is built") : std::string());
  const auto left = available_memory();
  if (!left) return;
  // The model is measured only where the order takes some of its memory. One that is too large by itself is
  // refused later, with what to change.
  const size_t model = memory.held > 0 || memory.building > *left ? memory_beside_data(config) : 0;
  require_index_memory(memory, *left, model <= *left ? model : 0);
}

/// What a process reads before it trains. Must not be moved, because the sets refer to its members.
class Opened {
 public:
  explicit Opened(PretrainConfig given) : config(std::move(given)) {}
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  void open(const OpenRules& rules) {
    tokenizer = open_tokenizer(config);
    log_padded_vocab(config.model.vocab_size, config.model.padded_vocab());
    const int64_t vocab = config.model.vocab_size;
    if (config.data.mock) {
      const auto eod = tokenizer ? tokenizer->eod() : static_cast<int32_t>(vocab - 1);
      log_wanted_samples(config.train);
      const auto samples = wanted_samples(config.train);
      sets = mock_data(vocab, eod, static_cast<uint32_t>(config.train.seed),
                       {*samples[0], *samples[1], *samples[2]});
    } else {
      open_files(tokenizer_check(tokenizer.get(), config), rules);
    }
    mark_all_documents();
    // The sets have no pad id, and leave out what does not fill a sample.
    const bool masked = config.data.fim.on || config.data.eod_mask_loss;
    if (config.train.full_validation)
      for (DataSet* const set : validation_sets())
        sets.held +=
            read_as_a_whole(*set, config.model.seq_length, masked ? LabelsInLoss::kSome : LabelsInLoss::kAll);
  }

  /// The hash of the texts that the run reads; empty if it reads none.
  std::string texts() const { return texts_ ? texts_->hash() : std::string(); }

  PretrainConfig config;  // complete once open() has set the vocabulary's size
  std::unique_ptr<Tokenizer> tokenizer;
  OpenData data;  // datasets of --data-path, --train-data-path, …
  DataSets sets;

 private:
  void open_files(const TokenizerCheck& tokenizers, const OpenRules& rules) {
    if (config.data.reads_texts()) {
      texts_ = open_texts(config, *tokenizer);
      sets = texts_->sets();
      return;
    }
    OpenRules with_memory = rules;
    with_memory.check_memory = [&](const IndexMemory& memory) { check_index_memory(memory, config); };
    data = open_data(config, tokenizers, with_memory);
    sets.held = data.held;
    TokenRules samples{.vocab_size = config.model.vocab_size, .seed = config.train.seed};
    if (config.data.fim.on) samples.fim = std::make_shared<FimPermutation>(config.data.fim, *tokenizer);
    const std::array places = {&sets.train, &sets.valid, &sets.test};
    for (uint32_t part = 0; part < places.size(); ++part)
      if (data.splits[part]) *places[part] = data_set_of(*data.splits[part], samples, part);
    for (uint32_t i = 0; i < data.valid_sets.size(); ++i) {
      DataSet set = data_set_of(data.valid_sets[i], samples, i == 0 ? kValid : kSplitNames.size() - 1 + i);
      (i == 0 ? sets.valid : sets.more_valid.emplace_back()) = std::move(set);
    }
    if (config.data.has_own_paths()) return;
    sets.divided = data.files.front().sequences();
    for (const IndexedDataset& file : data.files) sets.divided = std::min(sets.divided, file.sequences());
  }

  std::vector<DataSet*> validation_sets() {
    std::vector<DataSet*> all{&sets.valid};
    for (DataSet& set : sets.more_valid) all.push_back(&set);
    return all;
  }

  void mark_all_documents() {
    if (!config.data.marks_documents()) return;
    const int32_t eod = tokenizer->eod();
    std::vector<DataSet*> all = validation_sets();
    all.insert(all.end(), {&sets.train, &sets.test});
    for (DataSet* const set : all) tell_documents(*set, eod, config.data.eod_mask_loss);
    warn_of_missing_ends(data.files, eod, config.data);
  }

  std::unique_ptr<RunTexts> texts_;
};

RunData data_of(const Opened& run) {
  RunData data{.datasets = {}, .samples = {run.sets.train.size, run.sets.valid.size, run.sets.test.size}};
  for (const IndexedDataset& one : run.data.files) data.datasets.push_back(&one);
  data.texts = run.texts();
  if (run.tokenizer) data.tokenizer = run.tokenizer->hash();
  return data;
}

}  // namespace

Json agreed_options(const PretrainConfig& config) {
  PretrainConfig shared = config;
  shared.train.threads = 0;
  shared.train.tensorboard = shared.train.log_json = shared.train.report = shared.train.log_file = "";
  shared.data.cache = "";
  for (std::vector<std::string>* paths :
       {&shared.data.data_path, &shared.data.train_path, &shared.data.valid_path, &shared.data.test_path}) {
    const Blend blend = parse_blend(*paths);
    paths->clear();
    for (const double weight : blend.weights) paths->push_back(concat(weight));
    for (const auto& [amount, epochs] : blend.budgets)
      paths->push_back(concat(epochs ? "epochs=" : "tokens=", amount));
  }
  for (std::vector<std::string>* paths : {&shared.train.eval_tasks, &shared.train.eval_fewshot_data})
    paths->assign(paths->empty() ? 0 : 1, "given");
  const auto given = [](std::string& path) { path = path.empty() ? "" : "given"; };
  for (std::string* path : {&shared.data.args_file, &shared.data.split_args_file, &shared.checkpoint.save,
                            &shared.checkpoint.load, &shared.tokenizer.vocab, &shared.tokenizer.merges,
                            &shared.tokenizer.model, &shared.train.trace})
    given(*path);
  return to_json(shared);
}

void log_ranks(const RankWorld& ranks, const PretrainConfig& config) {
  const Topology topology(config.parallel, ranks.comm->size());
  for (size_t i = 0; i < ranks.places.size(); ++i) {
    const RankPlace& place = ranks.places[i];
    const Coord at = topology.coord(static_cast<int>(i));
    log(" > rank ", i, ": ", place.host, " (", place.address, "), ", config.train.device, " with ",
        place.cpus.size(), place.cpus.size() == 1 ? " core" : " cores", ", tensor ", at.tensor, ", pipeline ",
        at.pipeline, ", data ", at.data,
        topology.size(Axis::kContext) > 1 ? concat(", context ", at.context) : std::string());
  }
}

namespace {

/// Opens the data on all ranks, however long that takes. The ranks that build indexes go first; the other
/// ranks then map these indexes.
void open_together(Opened& run, const RankWorld& ranks) {
  const SharedIndexes indexes(*ranks.comm, ranks.places, run.config.data.cache);
  const int rank = ranks.comm->rank(), here = ranks_beside(ranks.places, rank);
  if (here > 1)  // the log is mostly that of rank 0, which is a maker
    log(" > rank ", indexes.maker(), " reads the data and builds the order of samples; ", here - 1,
        here == 2 ? " other rank of this machine waits" : " other ranks of this machine wait", " for it");
  for (const bool makers : {true, false})
    do_together(*ranks.comm, run.config.parallel.peer_timeout(), [&](const WorkCheck& check) {
      const auto check_all = [&] {
        check();
        stop_if_asked();
      };
      if (indexes.makes() == makers)
        run.open({.check = check_all, .index_folder = indexes.folder(), .scans = makers});
    });
  require_same_data(*ranks.comm, ranks.places, run.config.parallel.peer_timeout(), data_of(run));
}

/// Connects this process's rank to the other ranks and calls `body`.
PretrainResult join_and_run(const PretrainConfig& config, const Json& agreed, const Launch& launch,
                            const RankBody& body) {
  const RankWorld ranks = enter_rank_world({.launch = launch,
                                            .options = agreed,
                                            .join = config.parallel.join_timeout(),
                                            .wait = config.parallel.peer_timeout()});
  try {
    return body(&ranks);
  } catch (const Stopped& stopped) {
    ranks.comm->abort(concat("stopped by ", stopped.name, " before the first step"));
    throw;
  } catch (...) {
    ranks.comm->abort(as_error(std::current_exception()).what());
    throw;
  }
}

}  // namespace

void describe_run(PretrainConfig config, const std::function<void(const std::string&)>& print) {
  log_world(config, nullptr);
  Opened run(std::move(config));
  run.open({.check = stop_if_asked, .index_folder = run.config.data.cache});
  const DryMemory memory = dry_memory(run.config);
  print(printable_lines(dry_run_text(run.config, memory.ranks, run.sets, run.tokenizer.get())));
  require_device_memory(memory.run, memory.ranks, memory.left);
}

ProcessRank process_rank(const RankWorld& ranks) {
  const int rank = ranks.comm->rank();
  const RankPlace& place = ranks.places[static_cast<size_t>(rank)];
  return {.world = *ranks.comm,
          .ranks_here = ranks_beside(ranks.places, rank),
          .cpu_share = cpu_share(ranks.places, rank),
          .place = {.number = number_beside(ranks.places, rank),
                    .own_process = true,
                    .machine = place.machine,
                    .host = place.host}};
}

PretrainResult as_rank(const PretrainConfig& config, const Json& agreed,
                       const std::optional<LaunchedRank>& rank, const RankBody& body) try {
  if (!rank || rank->launch.world == 1) return body(nullptr);
  mute_this_thread(!rank->logs);
  try {
    return join_and_run(config, agreed, rank->launch, body);
  } catch (const Error& error) {
    mute_this_thread(false);
    throw Error(error.kind(), concat("rank ", rank->launch.rank, ": ", error.what()));
  }
} catch (const Stopped& stopped) {
  return {.stopped_by = std::string(stopped.name)};
}

PretrainResult pretrain(PretrainConfig config, const StopSignal& stop,
                        const std::optional<LaunchedRank>& rank, const Settle& settle,
                        const ThreadLog& thread_log) {
  const Json agreed = agreed_options(config);
  return as_rank(config, agreed, rank, [&](const RankWorld* ranks) {
    Opened run(settle ? settle(ranks ? ranks->comm.get() : nullptr) : config);
    if (ranks) log_ranks(*ranks, run.config);
    log_world(run.config, ranks);
    if (!ranks) {
      run.open({.check = stop_if_asked, .index_folder = run.config.data.cache});
      return train(run.config, run.sets, run.tokenizer.get(), stop, thread_log);
    }
    open_together(run, *ranks);
    return train(run.config, run.sets, run.tokenizer.get(), stop, process_rank(*ranks));
  });
}

}  // namespace megalith
