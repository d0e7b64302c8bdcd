#include "libcore/train/run_rules.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "libcore/base/text.h"

namespace megalith {
namespace {

/// How launchers tell a process that it is one of several.
struct LauncherVariable {
  const char* name;
  int64_t alone = 1;                // its greatest value that tells of one process
  const char* only_with = nullptr;  // says nothing unless this variable is set, too
};
constexpr LauncherVariable kLauncherVariables[] = {
    {.name = "WORLD_SIZE"},  // torchrun
    {.name = "RANK", .alone = 0},
    {.name = "OMPI_COMM_WORLD_SIZE"},                        // Open MPI
    {.name = "PMI_SIZE"},                                    // MPICH
    {.name = "SLURM_NTASKS", .only_with = "SLURM_STEP_ID"},  // srun; without a step it is the batch script
    {.name = "PADDLE_TRAINERS_NUM"},                         // paddle.distributed.launch
    {.name = "RANK_SIZE"},                                   // Ascend
};

/// Empty when it is not set.
std::string_view environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

void refuse_launchers(Problems& problems) {
  for (const LauncherVariable& variable : kLauncherVariables) {
    const auto value = parse_int(environment(variable.name));
    if (!value || *value <= variable.alone) continue;
    if (variable.only_with && environment(variable.only_with).empty()) continue;
    problems.add(
        variable.name, "=", *value,
        " in the environment: a launcher started several processes, but all ranks are threads of one "
        "process; start one process without the launcher and give --nproc N");
    return;
  }
}

/// Complains when the ranks of the layout are not the threads of this process.
void check_ranks(const ParallelConfig& parallel, Problems& problems) {
  const auto refuse = [&](const char* option, int size) {
    if (size > 1) problems.add(option, ' ', size, " is not supported yet; leave it at 1");
  };
  refuse("--context-parallel-size", parallel.context);
  refuse("--expert-model-parallel-size", parallel.expert);
  const int given = std::max(parallel.nproc, 1);
  const bool legal =
      parallel.context == 1 && int64_t{parallel.data} * parallel.model_ranks() == parallel.world;
  if (legal && parallel.world != given)
    problems.add("the layout needs ", parallel.world, " ranks (tensor ", parallel.tensor, " * pipeline ",
                 parallel.pipeline, " * data ", parallel.data, ") and --nproc gives ", given,
                 "; give --nproc ", parallel.world);
  else if (legal && parallel.local_world != parallel.world)
    problems.add("--local-world-size ", parallel.local_world, ": all ", parallel.world,
                 " ranks are threads of this process; leave it out");
}

}  // namespace

void check_run(const PretrainConfig& config, Problems& problems) {
  check_ranks(config.parallel, problems);
  refuse_launchers(problems);
  if (config.parallel.nproc > 1 && config.train.device == "cuda")
    problems.add("--nproc ", config.parallel.nproc,
                 " and --device cuda contradict each other: the ranks of "
                 "one process compute on the CPU; give --device cpu");
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
  if (!prompt.empty() && config.parallel.model_ranks() > 1)
    problems.add("--sample-prompt needs the whole model on one rank, not on ", config.parallel.model_ranks(),
                 "; leave it out, and sample from a checkpoint with megalith-generate");
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
