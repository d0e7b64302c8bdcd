#include "libcore/plan/plan_options.h"

#include <algorithm>
#include <cstdlib>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/convert/sources/hf_config.h"
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

int environment_number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  if (!text || !*text) return otherwise;
  const auto value = parse_int(text);
  if (!value || *value < 1 || *value > ParallelConfig::kMostRanks)
    fail(ErrorKind::kUsage, name, " is ", quote(text), ", wanted a number of ranks from 1");
  return static_cast<int>(*value);
}

Machine machine_of(const PlanCommand& command, const Options& given) {
  AcceleratorList list = AcceleratorList::installed();
  for (const std::string& file : command.plan.gpu_files) list.add_file(file);
  Machine machine;
  const bool local = command.plan.gpu == "local";
  machine.device = local ? measure_this_machine() : list.find(command.plan.gpu);
  if (const auto gb = command.plan.memory_gb ? command.plan.memory_gb : memory_from_environment())
    machine.device.memory = *gb * 1e9;
  if (command.plan.network_gbps) machine.device.network_bandwidth = *command.plan.network_gbps * 1e9 / 8;
  ParallelConfig sizes = command.parallel;
  if (sizes.world == 0 && sizes.nproc != 0) sizes.finish();
  const bool world = given.given("world-size") || given.given("nproc"),
             here = given.given("local-world-size");
  machine.world =
      world ? std::max(sizes.world, 1) : environment_number("WORLD_SIZE", std::max(sizes.world, 1));
  const int domain = std::min(machine.device.link_domain, machine.world);
  machine.local_world = here    ? command.parallel.local_world
                        : world ? domain
                                : environment_number("LOCAL_WORLD_SIZE", domain);
  if (machine.local_world > machine.world || machine.world % machine.local_world != 0)
    fail(ErrorKind::kUsage, "--world-size ", machine.world, " is not a multiple of --local-world-size ",
         machine.local_world);
  return machine;
}

Precision precision_of(const PlanCommand& command) {
  const PlanOptions& plan = command.plan;
  if (!plan.fp4_format.empty()) return Precision::kNvfp4;
  if (!plan.fp8_format.empty()) return plan.fp8_recipe == "mxfp8" ? Precision::kMxfp8 : Precision::kFp8;
  const bool half = plan.gpu != "local" || command.train.bf16 || command.train.fp16;
  return half ? Precision::kHalf : Precision::kFloat32;
}

/// A Hugging Face model's shape; sizes that the command line gives stay.
void take_shape(PlanCommand& command, const Options& given) {
  const ModelConfig theirs = parse_hf_config(Json::load(command.plan.hf), command.plan.hf).config;
  const int seq = given.given("seq-length") ? command.model.seq_length : theirs.seq_length;
  const int positions =
      given.given("max-position-embeddings") ? command.model.max_positions : theirs.max_positions;
  command.model = theirs;
  command.model.seq_length = seq;
  command.model.max_positions = std::max(positions, seq);
}

void check_pipeline_options(const PlanCommand& command) {
  const ParallelConfig& parallel = command.parallel;
  if (!parallel.pipeline_layers.empty() && (parallel.first_layers || parallel.last_layers ||
                                            command.plan.account_embedding || command.plan.account_loss))
    fail(ErrorKind::kUsage,
         "--pipeline-layers names every stage; leave out the options for the first and the last");
}

void fix_pipeline(const PlanCommand& command, PlanRequest& request) {
  const PlanOptions& plan = command.plan;
  Fixed& fixed = request.fixed;
  fixed.first_layers = command.parallel.first_layers;
  fixed.last_layers = command.parallel.last_layers;
  for (const std::string& word : command.parallel.pipeline_layers) {
    const auto layers = parse_int(word);
    if (!layers || *layers < 1)
      fail(ErrorKind::kUsage, "--pipeline-layers: ", quote(word), " is no number of layers");
    request.problem.stage_layers.push_back(static_cast<int>(*layers));
  }
  if (const auto stages = static_cast<int>(request.problem.stage_layers.size()); stages > 0) {
    if (fixed.pipeline && *fixed.pipeline != stages)
      fail(ErrorKind::kUsage, "--pipeline-layers has ", stages, " stages, --pipeline-model-parallel-size is ",
           *fixed.pipeline, "; tables of interleaved stages are not planned");
    fixed.pipeline = stages;
  }
  check_pipeline_options(command);
  const int layers = command.model.layers + plan.account_embedding + plan.account_loss;
  if (plan.account_embedding || plan.account_loss) {
    if (!fixed.pipeline)
      fail(ErrorKind::kUsage,
           "--account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split need "
           "--pipeline-model-parallel-size");
    if (layers % *fixed.pipeline != 0)
      fail(ErrorKind::kUsage, "L2: ", layers,
           " layers, embedding and head counted, are not a multiple of pipeline ", *fixed.pipeline,
           nearest_multiples(layers, *fixed.pipeline));
    fixed.first_layers = layers / *fixed.pipeline - plan.account_embedding;
    fixed.last_layers = layers / *fixed.pipeline - plan.account_loss;
  }
  if (const auto& per_chunk = command.parallel.layers_per_chunk) {
    if (!fixed.pipeline)
      fail(ErrorKind::kUsage, "--num-layers-per-virtual-pipeline-stage needs --pipeline-model-parallel-size");
    if (layers % (*per_chunk * *fixed.pipeline) != 0)
      fail(ErrorKind::kUsage, "V1: ", layers, " layers are not a multiple of pipeline ", *fixed.pipeline,
           " * ", *per_chunk, " of --num-layers-per-virtual-pipeline-stage");
    fixed.chunks = layers / (*per_chunk * *fixed.pipeline);
  }
}

void fix_recompute(const PlanCommand& command, const Options& given, Fixed& fixed) {
  const TrainConfig& train = command.train;
  if (given.given("recompute-granularity") || train.recompute != Recompute::kNone)
    fixed.recompute = train.recompute == Recompute::kFull        ? Recomputed::kFull
                      : train.recompute == Recompute::kSelective ? Recomputed::kAttention
                                                                 : Recomputed::kNone;
  const bool block = train.recompute_method == "block";
  if (fixed.recompute == Recomputed::kFull)
    fixed.recompute_layers = block ? train.recompute_layers.value_or(0) : 0;
}

Fixed fixed_by(const PlanCommand& command, const Options& given) {
  Fixed fixed;
  if (given.given("tensor-model-parallel-size")) fixed.tensor = command.parallel.tensor;
  if (given.given("pipeline-model-parallel-size")) fixed.pipeline = command.parallel.pipeline;
  if (given.given("context-parallel-size")) fixed.context = command.parallel.context;
  if (given.given("micro-batch-size")) fixed.micro_batch = command.train.micro_batch;
  if (given.given("sequence-parallel")) fixed.sequence = command.parallel.sequence;
  if (given.given("use-distributed-optimizer"))
    fixed.sharding = command.parallel.distributed_optimizer ? Sharding::kOptimizer : Sharding::kNone;
  if (given.given("sharding")) fixed.sharding = command.parallel.sharding;
  fix_recompute(command, given, fixed);
  return fixed;
}

void refuse_unplanned(const PlanCommand& command, const Options& given) {
  if (command.parallel.expert > 1)
    fail(ErrorKind::kUsage, "--expert-model-parallel-size ", command.parallel.expert,
         ": mixtures of experts are not planned");
  if (given.given("data-parallel-size"))
    fail(ErrorKind::kUsage, "--data-parallel-size ", command.parallel.data,
         " follows from the other sizes; give --world-size and those");
  if (given.given("gradient-accumulation-steps"))
    fail(ErrorKind::kUsage,
         "--gradient-accumulation-steps: a plan needs the batch of all ranks; give --global-batch-size");
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

void PlanOptions::validate(Problems& problems) const {
  if (json && emit != JobKind::kNone) problems.add("--json and --emit both want stdout; give one");
  if (!fp8_recipe.empty() && fp8_format.empty())
    problems.add("--fp8-recipe ", fp8_recipe, " needs --fp8-format");
}

PlanRequest plan_request(PlanCommand& command, const Options& given) {
  refuse_unplanned(command, given);
  if (!command.plan.hf.empty()) take_shape(command, given);
  PlanRequest request;
  PlanProblem& p = request.problem;
  p.model = command.model;
  if (p.model.vocab_size == 0) p.model.vocab_size = vocabulary(command.tokenizer);
  p.machine = machine_of(command, given);
  p.precision = precision_of(command);
  p.software.attention = command.plan.attention;
  p.software.overlap_tensor = true;  // launch_options() turns on what is assumed
  p.software.expandable_segments = command.plan.expandable_segments;
  p.max_global_batch = command.plan.max_global_batch;
  if (p.max_global_batch == 0) p.global_batch = command.train.global_batch;
  if (p.max_global_batch == 0 && p.global_batch == 0)
    fail(ErrorKind::kUsage,
         "give --global-batch-size, or --max-global-batch-size for the largest that a plan allows");
  request.fixed = fixed_by(command, given);
  fix_pipeline(command, request);
  return request;
}

PlanAnswer answer(const PlanCommand& command, const PlanRequest& request) {
  Coefficients own;
  PlanProblem problem = request.problem;
  if (!command.plan.coefficients.empty()) {
    own = read_coefficients(command.plan.coefficients, fitted_coefficients());
    problem.coefficients = &own;
  }
  const PlanOptions& plan = command.plan;
  const SearchResult result =
      search_plans(problem, request.fixed, static_cast<size_t>(plan.top), plan.search);
  const bool found = !result.plans.empty();
  if (found && plan.emit != JobKind::kNone)
    return {job_text(problem, result.plans.front().candidate, plan.emit, false), true};
  Report report{.problem = problem, .result = result, .gpu_hour = plan.gpu_hour};
  for (const Plan& one : result.plans) report.trainer.push_back(ask_trainer(problem, one.candidate));
  report.sensitivities = sensitivity(problem, result.plans);
  if (const auto& lacking = found ? result.missed : result.closest)
    report.remedy = smallest_change(problem, *lacking);
  if (plan.explain) {
    report.front = pareto_front(problem, request.fixed);
    report.inverse = inverse_questions(problem, request.fixed);
  }
  if (plan.json) return {plan_json(report), found};
  if (!found) fail(ErrorKind::kUsage, "no plan fits\n", plan_text(report));
  return {plan_text(report), true};
}

}  // namespace megalith
