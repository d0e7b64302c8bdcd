#include "libcore/plan/request/plan_request.h"

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/plan/request/fixed.h"
#include "libcore/plan/request/machine_of.h"
#include "libcore/plan/request/outputs.h"
#include "libcore/plan/request/pipeline_cut.h"
#include "libcore/plan/request/software_of.h"
#include "libcore/plan/request/world.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "libcore/train/step/memory_limits.h"

namespace megalith {
namespace {

/// The number of ids of the tokenizer, or of GPT-2's if the tokenizer's files are not on this machine: runs
/// are often planned elsewhere.
int64_t vocabulary(const TokenizerConfig& t) {
  const std::string& file = t.vocab.empty() ? t.model : t.vocab;
  if (!file.empty() && file_exists(file)) return make_tokenizer(tokenizer_files(t, 0))->vocab_size();
  log(file.empty() ? "no tokenizer given" : file + " is not on this machine",
      ": vocabulary of 50,257 ids assumed (GPT-2's); ", "give --vocab-size for another");
  return 50257;
}

Precision precision_of(const PlanCommand& command) {
  const PlanOptions& plan = command.plan;
  if (!plan.fp4_format.empty()) return Precision::kNvfp4;
  if (!plan.fp8_format.empty()) return plan.fp8_recipe == "mxfp8" ? Precision::kMxfp8 : Precision::kFp8;
  const bool half = !plan.local() || command.train.bf16 || command.train.fp16;
  return half ? Precision::kHalf : Precision::kFloat32;
}

void refuse_unplanned(const PlanCommand& command) {
  if (command.train.fp16 && command.train.bf16)
    fail(ErrorKind::kUsage, "--fp16 and --bf16 exclude each other; give one of them");
  const bool half = command.train.bf16 || command.train.fp16 || command.plan.local();
  if (command.gives("bf16") && !half && !command.trains_here)  // our trainer itself reports this
    fail(
        ErrorKind::kUsage,
        "--bf16 false: a device's plan is in 16 bits, or fewer; leave it out, or give --fp16, or --gpu local "
        "for a plan in fp32");
  const int parts = command.plan.expert_tensor.value_or(1);
  const std::string of_experts = parts > 1 ? concat("--expert-tensor-parallel-size ", parts)
                                 : command.parallel.expert > 1
                                     ? concat("--expert-model-parallel-size ", command.parallel.expert)
                                 : command.plan.overlap_exchange ? "--overlap-moe-expert-parallel-comm"
                                                                 : "";
  if (!of_experts.empty() && !command.model.has_experts())
    fail(ErrorKind::kUsage, of_experts, " needs --num-experts");
  const ModelShape& m = command.model;
  const bool all_experts = m.has_experts() && m.plain_layers(m.layers) == 0;
  if (!command.plan.hf.empty() && all_experts && command.given.on_command_line.contains("ffn-hidden-size") &&
      !command.given.on_command_line.contains("moe-ffn-hidden-size"))
    fail(ErrorKind::kUsage, "--ffn-hidden-size ", m.ffn_hidden, " changes nothing of ", command.plan.hf,
         ", whose layers all have experts; give --moe-ffn-hidden-size");
  for (const char* const growing : {"rampup-batch-size", "step-batch-size-schedule"})
    if (command.gives(growing))
      fail(ErrorKind::kUsage, "--", growing,
           ": a plan is for one global batch; give --global-batch-size alone");
}

/// What is tuned. kUsage for adapters in a model whose layers have none here.
PlannedTuning tuning_of(const PlanCommand& command) {
  PlannedTuning tuning = command.plan.tuning();
  tuning.model = command.model_folder;
  const ModelShape& m = command.model;
  if (tuning.adapts() && (m.has_experts() || m.latent_attention || m.predicted > 0))
    fail(ErrorKind::kUsage,
         command.plan.lora_rank ? concat("--lora-rank ", tuning.lora_rank) : "--finetuning-type lora",
         ": adapters are planned for dense models, not with ", beyond_our_trainer(m), "; leave it out");
  return tuning;
}

/// The global batch that follows from --gradient-accumulation-steps. kUsage when sizes are missing.
int64_t accumulated_batch(const PlanRequest& request) {
  const PlanCommand& command = request.command;
  const Fixed& fixed = request.fixed;
  const int64_t steps = command.train.accumulation.value_or(1);
  const bool cut = fixed.tensor && fixed.pipeline && command.parallel.world > 0;
  if (!fixed.micro_batch || (!fixed.data && !cut))
    fail(ErrorKind::kUsage, "--gradient-accumulation-steps ", steps,
         ": a plan needs the global batch; give --global-batch-size, or --micro-batch-size, "
         "--data-parallel-size and the sizes of model parallelism");
  const int data = fixed.data ? *fixed.data : command.parallel.world / command.parallel.model_ranks();
  return steps * *fixed.micro_batch * data;
}

/// A given global batch is fixed; --max-global-batch-size is then only its upper limit.
void set_batch(PlanRequest& request) {
  const PlanCommand& command = request.command;
  PlanProblem& p = request.problem;
  p.max_global_batch = command.plan.max_global_batch;
  p.global_batch = command.train.global_batch;
  if (command.train.accumulation) {
    const int64_t batch = accumulated_batch(request);
    if (p.global_batch > 0 && p.global_batch != batch)
      fail(ErrorKind::kUsage, "--gradient-accumulation-steps ", *command.train.accumulation,
           " makes a global batch of ", batch, ", --global-batch-size is ", p.global_batch,
           "; leave one of them out");
    p.global_batch = batch;
  }
  if (p.max_global_batch > 0 && p.global_batch > p.max_global_batch)
    fail(ErrorKind::kUsage, command.train.global_batch > 0 ? "--global-batch-size " : "the global batch of ",
         p.global_batch, command.train.global_batch > 0 ? "" : " (--gradient-accumulation-steps)",
         " is above --max-global-batch-size ", p.max_global_batch, "; leave one of them out");
  if (p.max_global_batch == 0 && p.global_batch == 0)
    fail(ErrorKind::kUsage,
         "give --global-batch-size, or --max-global-batch-size for the largest that a plan allows");
}

/// A layout that the user gives whole leaves nothing to choose, so it is only refused where it probably does
/// not fit. A search asks for more: its plans are to run.
double asked_probability(const PlanRequest& request) {
  const Fixed& fixed = request.fixed;
  const bool whole = fixed.tensor && fixed.pipeline && fixed.micro_batch;
  return whole && !request.command.gives("fit-probability") ? 0.5 : request.command.plan.fit_probability;
}

}  // namespace

PlanRequest plan_request(PlanCommand asked) {
  PlanRequest request{.command = std::move(asked)};
  PlanCommand& command = request.command;
  PlanProblem& p = request.problem;
  check_outputs(command);
  refuse_unplanned(command);
  GivenWorld world = take_world(command);
  request.fixed = fixed_by(command);
  if (command.model.vocab_size == 0) command.model.vocab_size = vocabulary(command.tokenizer);
  fix_pipeline(request);
  take_data_ranks(request, world);
  p.model = command.model;
  p.machine = machine_of(command, world);
  p.precision = precision_of(command);
  p.fp16 = command.train.fp16 || !p.machine.device.bfloat16;
  p.rank_order = command.parallel.rank_order;
  p.graphs = command.train.cuda_graphs != "none";
  p.bucket_size = command.parallel.bucket_size;
  p.bucket_count = command.parallel.bucket_count;
  p.asked_probability = asked_probability(request);
  p.fp8_format = command.plan.fp8_format;
  p.fp8_recipe = command.plan.fp8_recipe;
  p.tuning = tuning_of(command);
  p.run_words = p.tuning.finetunes ? command.given.words.tuning : command.given.words.ours;
  p.megatron_words = command.given.words.megatron;
  p.software = software_of(command, p.machine.device);
  if (command.plan.local()) {
    p.trained_here = true;
    p.save_copy = wanted_save_copy(command.checkpoint);
    p.needs_save_copy = command.checkpoint.async_save.value_or(false);
  }
  set_batch(request);
  return request;
}

}  // namespace megalith
