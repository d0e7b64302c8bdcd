#include "libcore/train/run_rules.h"

#include <cstdlib>

#include "libcore/base/text.h"

namespace megalith {
namespace {

void refuse_ranks(const PretrainConfig& config, Problems& problems) {
  const auto refuse = [&](const char* what, int64_t ranks) {
    if (ranks > 1)
      problems.add(what, ' ', ranks,
                   " needs several ranks, which this version does not have yet; leave it at 1");
  };
  refuse("--tensor-model-parallel-size", config.parallel.tensor);
  refuse("--pipeline-model-parallel-size", config.parallel.pipeline);
  refuse("--context-parallel-size", config.parallel.context);
  refuse("--expert-model-parallel-size", config.parallel.expert);
  refuse("--data-parallel-size", config.parallel.data);
  if (config.parallel.data <= 1 && config.parallel.model_ranks() == 1)
    refuse("--world-size", config.parallel.world);
  // As torchrun sets it.
  if (const char* world = std::getenv("WORLD_SIZE"))
    if (const auto ranks = parse_int(world)) refuse("WORLD_SIZE (environment)", *ranks);
}

}  // namespace

void check_run(const PretrainConfig& config, Problems& problems) {
  refuse_ranks(config, problems);
  if (config.train.fp16) problems.add("--fp16 is not supported yet; give --bf16, or neither for fp32");
  if (config.data.data_path.empty()) problems.add("--data-path is missing");
  const bool tokenizer = !config.tokenizer.type.empty();
  if (!tokenizer && config.model.vocab_size == 0)
    problems.add(
        "the vocabulary's size is not known; give a tokenizer (--vocab-file and --merge-file, or "
        "--tokenizer-model), or "
        "--vocab-size");
  const std::string& prompt = config.train.sample_prompt;
  if (!tokenizer && !prompt.empty()) problems.add("--sample-prompt needs a tokenizer");
  if (valid_utf8_prefix(prompt) != prompt.size())
    problems.add("--sample-prompt ", quote(prompt), " is not valid UTF-8");
}

void require_same_model(const ModelConfig& model, const Json& args, const std::string& from) {
  ModelConfig theirs = model;
  from_json(theirs, args, from);
  theirs.attention_dropout = model.attention_dropout;
  theirs.hidden_dropout = model.hidden_dropout;
  theirs.init_std = model.init_std;
  theirs.seq_length = model.seq_length;
  theirs.vocab_divisor = model.vocab_divisor;
  if (model.position != PositionEmbedding::kLearned) theirs.max_positions = model.max_positions;
  std::string list;
  for (const Difference& d : differences(theirs, model))
    list += concat("\n  --", d.name, ": checkpoint ", d.theirs, ", command line ", d.ours);
  if (!list.empty())
    fail(ErrorKind::kUsage, from,
         ": the checkpoint is of another model; give its options, or another --load:", list);
}

std::vector<Difference> sample_order_differences(const PretrainConfig& config, const Json& args,
                                                 const std::string& from) {
  PretrainConfig theirs = config;
  from_json(theirs, args, from);
  PretrainConfig changed = config;  // theirs, but only in what orders samples
  changed.data.data_path = theirs.data.data_path;
  changed.data.split = theirs.data.split;
  changed.train.seed = theirs.train.seed;
  changed.model.seq_length = theirs.model.seq_length;
  return differences(changed, config);
}

}  // namespace megalith
