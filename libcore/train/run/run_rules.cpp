#include "libcore/train/run/run_rules.h"

#include <algorithm>

#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/checkpoint/families/family.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/convert/sources/model_files.h"
#include "libcore/io/run/run_files.h"
#include "libcore/train/log/run_outputs.h"
#include "libcore/train/saves/checkpoint_store.h"
#include "libcore/train/tasks/run_tasks.h"

namespace megalith {

void check_ranks(const ParallelConfig& parallel, Problems& problems) {
  if (parallel.expert > 1)
    problems.add(Opt{"expert-model-parallel-size"}, ' ', parallel.expert,
                 " is not supported yet; leave it at 1");
  const int given = std::max({parallel.processes, parallel.nproc, 1});
  const bool legal = int64_t{parallel.data} * parallel.model_ranks() == parallel.world;
  const std::string needs = concat(
      "the layout needs ", parallel.world, " ranks (tensor ", parallel.tensor, " * pipeline ",
      parallel.pipeline, parallel.context > 1 ? concat(" * context ", parallel.context) : std::string(),
      " * data ", parallel.data, ") and ");
  if (legal && parallel.world != given && parallel.processes > 0)
    problems.add(needs, given, " processes were started; start ", parallel.world);
  else if (legal && parallel.world != given)
    problems.add(needs, Opt{"nproc"}, " gives ", given, "; give ", Opt{"nproc"}, ' ', parallel.world);
  else if (legal && parallel.processes == 0 && parallel.local_world != parallel.world)
    problems.add(Opt{"local-world-size"}, ' ', parallel.local_world, ": all ", parallel.world,
                 " ranks are threads of this process; leave it out");
}

namespace {

void check_checkpoint_format(const PretrainConfig& config, Problems& problems) {
  const CheckpointConfig& checkpoint = config.checkpoint;
  if (!checkpoint.save.empty() && !traits_of(checkpoint.format).refusal)
    if (const std::string why = store_of(checkpoint.format).refusal(config.model, config.parallel);
        !why.empty())
      problems.add(Opt{"ckpt-format"}, ' ', enum_name(checkpoint.format), ": ", why);
}

void check_data(const PretrainConfig& config, Problems& problems) {
  if (config.data.data_path.empty() && !config.data.has_own_paths() && !config.data.mock)
    problems.missing({"data-path"}, " (or ", Opt{"train-data-path"}, ")");
  if (config.data.mock && config.train.epochs)
    problems.add(Opt{"num-epochs"}, ' ', *config.train.epochs, " and ", Opt{"mock-data"},
                 ", which has no end; give ", Opt{"train-iters"});
  if (config.train.eval_only && config.train.eval_iters == 0 && !config.train.full_validation &&
      config.train.eval_tasks.empty())
    problems.add(Opt{"eval-only"}, " and ", Opt{"eval-iters"},
                 " 0 leave nothing to do; leave one of them out");
}

bool has_tokenizer(const PretrainConfig& config) {
  return !config.tokenizer.type.empty();
}

/// Reports data whose samples cannot be made without a tokenizer.
void check_need_of_tokenizer(const PretrainConfig& config, Problems& problems) {
  if (has_tokenizer(config)) return;
  if (config.data.reads_texts()) {
    const bool trains = !config.data.train_path.empty();
    problems.add(Opt{trains ? "train-data-path" : "valid-data-path"}, ' ',
                 (trains ? config.data.train_path : config.data.valid_path).front(),
                 " needs a tokenizer for its texts");
  }
  if (config.model.vocab_size == 0)
    problems.add("the vocabulary's size is not known; give a tokenizer (", Opt{"vocab-file"}, " and ",
                 Opt{"merge-file"}, ", or ", Opt{"tokenizer-model"}, "), or ", Opt{"vocab-size"});
  if (config.data.fim.on) problems.add(Opt{"fim-data"}, " needs a tokenizer, which cuts texts anew");
  if (config.data.marks_documents())
    problems.add(Opt{"reset-position-ids"}, ", ", Opt{"reset-attention-mask"}, " and ", Opt{"eod-mask-loss"},
                 " need a tokenizer, which knows the token that ends a document");
}

void check_sample_prompt(const PretrainConfig& config, Problems& problems) {
  const std::string& prompt = config.train.sample_prompt;
  if (!has_tokenizer(config) && !prompt.empty()) problems.add(Opt{"sample-prompt"}, " needs a tokenizer");
  if (!prompt.empty() && config.parallel.model_ranks() > 1)
    problems.add(Opt{"sample-prompt"}, " needs the whole model on one rank, not on ",
                 config.parallel.model_ranks(),
                 "; leave it out, and sample from a checkpoint with megalith-generate");
  if (valid_utf8_prefix(prompt) != prompt.size())
    problems.add(Opt{"sample-prompt"}, ' ', quote(prompt), " is not valid UTF-8");
}

}  // namespace

void check_run(const PretrainConfig& config, Problems& problems) {
  check_model_type(config.model, problems);
  check_ranks(config.parallel, problems);
  check_checkpoint_format(config, problems);
  check_data(config, problems);
  check_need_of_tokenizer(config, problems);
  if (config.parallel.context > 1 && (config.data.reset_position_ids || config.data.reset_attention_mask))
    problems.add(Opt{"reset-position-ids"}, " and ", Opt{"reset-attention-mask"},
                 " need a whole sample on one rank; leave ", Opt{"context-parallel-size"}, " at 1");
  check_eval_tasks(config, problems);
  if (!has_tokenizer(config) && !config.train.eval_tasks.empty())
    problems.add(Opt{"eval-tasks"}, " needs a tokenizer");
  check_sample_prompt(config, problems);
}

void check_files(const PretrainConfig& config, RunFiles files) {
  const DataConfig& data = config.data;
  for (const auto& [option, paths] :
       {std::pair{"--data-path", &data.data_path}, std::pair{"--train-data-path", &data.train_path},
        std::pair{"--valid-data-path", &data.valid_path}, std::pair{"--test-data-path", &data.test_path}})
    for (const std::string& prefix : *paths)
      data.reads_texts() ? files.reads(option, prefix) : files.reads_dataset(option, prefix);
  files.reads("--data-args-path", data.args_file);
  files.reads("--per-split-data-args-path", data.split_args_file);
  reads_tokenizer(files, config.tokenizer);
  reads_eval_tasks(files, config.train);
  add_run_outputs(files, config);
  files.check();
}

void add_run_outputs(RunFiles& files, const PretrainConfig& config) {
  const std::string &load = config.checkpoint.load, &save = config.checkpoint.save;
  keeps_checkpoints(files, "--save", save);
  files.fills_folder("--save", save);
  files.fills_folder("--tensorboard-dir", config.train.tensorboard);
  files.fills_folder("--data-cache-path", config.data.cache);
  // The folder of --load must not hold outputs of the run, unless --save names the same folder: if the same
  // command runs again, it appends to its log there.
  if (real_path(load) != real_path(save)) reads_model(files, "--load", load);
  const std::string metrics = metrics_path(config.train);
  // A report is drawn from the figures, so they must go to a file and not to a stream.
  files.writes(config.train.log_json.empty() ? "--report" : "--log-json", metrics,
               config.train.report.empty() ? OutputKind::kStream : OutputKind::kFile);
  files.writes("--report", config.train.report, OutputKind::kStream);
  files.writes("--trace", config.train.trace, OutputKind::kStream);
  files.writes("--log-file", config.train.log_file, OutputKind::kStream);
}

void require_same_model(const ModelConfig& model, const Json& args, const std::string& from,
                        const std::string& ways_out) {
  ModelConfig theirs = model;
  from_json(theirs, args, from);
  theirs.attention_dropout = model.attention_dropout;
  theirs.hidden_dropout = model.hidden_dropout;
  theirs.init_std = model.init_std;
  theirs.seq_length = model.seq_length;
  theirs.vocab_divisor = model.vocab_divisor;
  theirs.hf_model_type = model.hf_model_type;
  if (model.position != PositionEmbedding::kLearned) theirs.max_positions = model.max_positions;
  std::string list;
  for (const Difference& d : differences(theirs, model))
    list += concat("\n  --", d.name, ": checkpoint ", d.theirs, ", command line ", d.ours);
  if (!list.empty())
    fail(ErrorKind::kUsage, from, ": the checkpoint belongs to another model; give its options, or ",
         ways_out, ':', list);
}

std::vector<Difference> sample_order_differences(const PretrainConfig& config, const Json& args,
                                                 const std::string& from) {
  PretrainConfig theirs = config;
  from_json(theirs, args, from);
  // This run's options, but the checkpoint's where they determine the order of samples.
  PretrainConfig changed = config;
  changed.data.data_path = theirs.data.data_path;
  changed.data.split = theirs.data.split;
  changed.data.train_path = theirs.data.train_path;
  changed.data.stride = theirs.data.stride;
  changed.data.fim = theirs.data.fim;
  changed.train.seed = theirs.train.seed;
  changed.model.seq_length = theirs.model.seq_length;
  return differences(changed, config);
}

}  // namespace megalith
