#include "libcore/plan/plan_options.h"

#include <algorithm>
#include <cstdlib>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/io/file.h"
#include "libcore/plan/plan_text.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "libcore/text/formats/tokenizer_files.h"

namespace megalith {
namespace {

std::optional<double> memory_from_environment() {
  const char* text = std::getenv("DEVICE_MEMORY_GB");
  if (!text || !*text) return std::nullopt;
  const auto gb = parse_double(text);
  if (!gb || *gb <= 0)
    fail(ErrorKind::kUsage, "DEVICE_MEMORY_GB is ", quote(text), ", wanted a number of 1e9 bytes");
  return gb;
}

/// The tokenizer's ids where its files are on this machine; a plan is often made elsewhere, then GPT-2's.
int64_t vocabulary(const TokenizerConfig& t) {
  const std::string& file = t.vocab.empty() ? t.model : t.vocab;
  if (!file.empty() && file_exists(file)) return make_tokenizer(tokenizer_files(t, 0))->vocab_size();
  log(file.empty() ? "no tokenizer given" : file + " is not on this machine",
      ": vocabulary of 50,257 ids assumed (GPT-2's); ", "give --vocab-size for another");
  return 50257;
}

Machine machine_of(const PlanCommand& command, const Options& given) {
  Machine machine;
  const bool local = command.plan.gpu == "local";
  machine.device = local ? measure_this_machine() : find_accelerator(command.plan.gpu);
  if (const auto gb = command.plan.memory_gb ? command.plan.memory_gb : memory_from_environment())
    machine.device.memory = *gb * 1e9;
  ParallelConfig sizes = command.parallel;
  if (sizes.world == 0 && sizes.nproc != 0) sizes.finish();
  machine.world = std::max(sizes.world, 1);
  machine.local_world =
      given.given("local-world-size") ? command.parallel.local_world : std::min(8, machine.world);
  if (machine.local_world > machine.world || machine.world % machine.local_world != 0)
    fail(ErrorKind::kUsage, "--world-size ", machine.world, " is not a multiple of --local-world-size ",
         machine.local_world);
  return machine;
}

Fixed fixed_by(const PlanCommand& command, const Options& given) {
  Fixed fixed;
  if (given.given("tensor-model-parallel-size")) fixed.tensor = command.parallel.tensor;
  if (given.given("pipeline-model-parallel-size")) fixed.pipeline = command.parallel.pipeline;
  if (given.given("context-parallel-size")) fixed.context = command.parallel.context;
  if (given.given("micro-batch-size")) fixed.micro_batch = command.train.micro_batch;
  if (given.given("sequence-parallel")) fixed.sequence = command.parallel.sequence;
  if (given.given("use-distributed-optimizer"))
    fixed.distributed_optimizer = command.parallel.distributed_optimizer;
  if (given.given("sharding")) fixed.distributed_optimizer = command.parallel.sharded();
  if (given.given("recompute-granularity")) fixed.recompute = command.train.recompute;
  const auto& per_chunk = command.parallel.layers_per_chunk;
  if (per_chunk && fixed.pipeline && command.model.layers % (*per_chunk * *fixed.pipeline) == 0)
    fixed.chunks = command.model.layers / (*per_chunk * *fixed.pipeline);
  return fixed;
}

}  // namespace

void PlanCommand::add_to(Options& options) {
  static constexpr IgnoredOption kLlmacc[] = {{"task-type", IgnoredOption::kOne}};
  options.add("Planning", plan).add("Model", model).add("Parallelism", parallel).add("Training", train);
  options.add("Data", data).add("Checkpoint", checkpoint).add("Tokenizer", tokenizer);
  options.ignore(ignored_megatron_options()).ignore(kLlmacc);
}

void PlanCommand::check(Options& options) {
  options.check({"Planning", "Model", "Tokenizer"});
}

PlanRequest plan_request(const PlanCommand& command, const Options& given) {
  for (const char* option :
       {"pipeline-layers", "decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers"})
    if (given.given(option))
      fail(ErrorKind::kUsage, "--", option, ": plans divide the layers evenly; leave it out");
  PlanRequest request;
  PlanProblem& p = request.problem;
  p.model = command.model;
  if (p.model.vocab_size == 0) p.model.vocab_size = vocabulary(command.tokenizer);
  p.machine = machine_of(command, given);
  p.half = command.plan.gpu != "local" || command.train.bf16 || command.train.fp16;
  p.max_global_batch = command.plan.max_global_batch;
  if (p.max_global_batch == 0) p.global_batch = command.train.global_batch;
  if (p.max_global_batch == 0 && p.global_batch == 0)
    fail(ErrorKind::kUsage,
         "give --global-batch-size, or --max-global-batch-size for the largest that a plan allows");
  request.fixed = fixed_by(command, given);
  return request;
}

std::string answer(const PlanCommand& command, const PlanRequest& request) {
  const SearchResult result = search_plans(request.problem, request.fixed);
  if (command.plan.json) return plan_json(request.problem, result, command.plan.top);
  const std::string text = plan_text(request.problem, result, command.plan.top);
  if (result.plans.empty()) fail(ErrorKind::kUsage, "no plan fits\n", text);
  return text;
}

}  // namespace megalith
