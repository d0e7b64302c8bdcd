#include "libcore/plan/plan_options.h"

#include <algorithm>
#include <cstdlib>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/config/config_file.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/io/file.h"
#include "libcore/io/run_files.h"
#include "libcore/json/small_json.h"
#include "libcore/plan/kernel_rates.h"
#include "libcore/plan/link_log.h"
#include "libcore/plan/plan_html.h"
#include "libcore/plan/profile/calibrate.h"
#include "libcore/plan/run_log.h"
#include "libcore/plan/shape/hf_shape.h"
#include "libcore/plan/timeline.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "libcore/text/formats/tokenizer_files.h"
#include "libcore/train/memory.h"

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
  if (!value || *value < 1 || *value > ParallelConfig::kMaxRanks)
    fail(ErrorKind::kUsage, name, " is ", quote(text), ", wanted a number of ranks from 1");
  return static_cast<int>(*value);
}

/// Whether the sizes of the world were told, on the command line or by a cluster's file.
struct GivenWorld {
  bool world = false, local = false;
};

Machine machine_of(const PlanCommand& command, const GivenWorld& given) {
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
  const bool world = given.world, here = given.local;
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

/// A cluster's file. What the command line gives goes first.
GivenWorld take_cluster(PlanCommand& command, const Options& given) {
  GivenWorld sizes{given.given("world-size") || given.given("nproc"), given.given("local-world-size")};
  if (command.plan.cluster.empty()) return sizes;
  for (const FileOption& option : read_config_file(command.plan.cluster)) {
    const auto value = option.words.size() == 1 ? parse_double(option.words.front()) : std::nullopt;
    const auto wanted = [&](bool valid, const char* what) {
      if (!valid)
        fail(ErrorKind::kData, option.where, ": ", option.key, " is ", quote(join(option.words, " ")),
             ", wanted ", what);
    };
    const auto taken = [&] { return given.given(option.key); };
    if (option.key == "gpu") {
      wanted(option.words.size() == 1, "a name");
      if (!taken()) command.plan.gpu = option.words.front();
    } else if (option.key == "world-size" || option.key == "local-world-size") {
      wanted(value && *value >= 1 && *value <= ParallelConfig::kMaxRanks, "a number of devices");
      const bool world = option.key == "world-size";
      (world ? sizes.world : sizes.local) = true;
      if (!taken())
        (world ? command.parallel.world : command.parallel.local_world) = static_cast<int>(*value);
    } else if (option.key == "network-gbps" || option.key == "device-memory-gb" ||
               option.key == "gpu-hour-price") {
      wanted(value && *value > 0, "a number above 0");
      if (taken()) continue;
      if (option.key == "network-gbps") command.plan.network_gbps = value;
      if (option.key == "device-memory-gb") command.plan.memory_gb = value;
      if (option.key == "gpu-hour-price") command.plan.gpu_hour = *value;
    } else {
      fail(ErrorKind::kData, option.where, ": ", quote(option.key),
           " says nothing about a cluster; known are gpu, world-size, local-world-size, network-gbps, "
           "device-memory-gb, "
           "gpu-hour-price");
    }
  }
  return sizes;
}

void check_pipeline_options(const PlanCommand& command) {
  const ParallelConfig& parallel = command.parallel;
  if (!parallel.pipeline_layers.empty() && (parallel.first_layers || parallel.last_layers ||
                                            command.plan.account_embedding || command.plan.account_loss))
    fail(ErrorKind::kUsage,
         "--pipeline-layers names every stage; leave out the options for the first and the last");
}

/// The layers that were named for a stage, of which a model has as many at least.
std::optional<int> layers_of_stage(const char* option, std::optional<int> named, int layers) {
  if (named && *named > layers)
    fail(ErrorKind::kUsage, "--", option, ' ', *named, " is more than the ", layers, " layers of the model");
  return named;
}

void fix_pipeline(const PlanCommand& command, PlanRequest& request) {
  const PlanOptions& plan = command.plan;
  Fixed& fixed = request.fixed;
  fixed.first_layers = layers_of_stage("decoder-first-pipeline-num-layers", command.parallel.first_layers,
                                       command.model.layers);
  fixed.last_layers =
      layers_of_stage("decoder-last-pipeline-num-layers", command.parallel.last_layers, command.model.layers);
  const std::vector<std::string>& given = command.parallel.pipeline_layers;
  for (const std::string& word : given.empty() ? given : split(join(given, ","), ',')) {
    const auto layers = parse_int(word);
    if (!layers || *layers < 1 || *layers > command.model.layers)
      fail(ErrorKind::kUsage, "--pipeline-layers: ", quote(word), " is no number of layers from 1 to ",
           command.model.layers, " (--num-layers)");
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
    const int64_t together = int64_t{*per_chunk} * *fixed.pipeline;
    if (layers % together != 0)
      fail(ErrorKind::kUsage, "V1: ", layers, " layers are not a multiple of pipeline ", *fixed.pipeline,
           " * ", *per_chunk, " of --num-layers-per-virtual-pipeline-stage");
    fixed.chunks = static_cast<int>(layers / together);
  }
}

void fix_recompute(const PlanCommand& command, const Options& given, Fixed& fixed) {
  TrainConfig train = command.train;
  train.finish();  // of the short forms; the group is not checked here
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
  if (given.given("expert-model-parallel-size")) fixed.expert = command.parallel.expert;
  fixed.expert_tensor = command.plan.expert_tensor;
  if (given.given("micro-batch-size")) fixed.micro_batch = command.train.micro_batch;
  if (given.given("sequence-parallel")) fixed.sequence = command.parallel.sequence;
  if (given.given("use-distributed-optimizer"))
    fixed.sharding = command.parallel.distributed_optimizer ? Sharding::kOptimizer : Sharding::kNone;
  if (given.given("sharding")) fixed.sharding = command.parallel.sharding;
  fix_recompute(command, given, fixed);
  return fixed;
}

void refuse_unplanned(const PlanCommand& command, const Options& given) {
  if (command.train.fp16 && command.train.bf16)
    fail(ErrorKind::kUsage, "--fp16 and --bf16 exclude each other; give one of them");
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
  if (!command.plan.hf.empty() && all_experts && given.on_command_line("ffn-hidden-size") &&
      !given.on_command_line("moe-ffn-hidden-size"))
    fail(ErrorKind::kUsage, "--ffn-hidden-size ", m.ffn_hidden, " changes nothing of ", command.plan.hf,
         ", whose layers all have experts; give --moe-ffn-hidden-size");
  if (given.given("rampup-batch-size"))
    fail(ErrorKind::kUsage,
         "--rampup-batch-size: a plan is for one batch of all ranks; give --global-batch-size alone");
}

/// --data-parallel-size says the ranks together with the other sizes, which are then all fixed.
void take_data_ranks(PlanCommand& command, GivenWorld& world, Fixed& fixed) {
  const ParallelConfig& sizes = command.parallel;
  const int64_t ranks = int64_t{sizes.data} * sizes.model_ranks();
  if (ranks > ParallelConfig::kMaxRanks)
    fail(ErrorKind::kUsage, "--data-parallel-size ", sizes.data, " * ", sizes.model_ranks(),
         " ranks of a model are more than ", ParallelConfig::kMaxRanks);
  if (world.world && sizes.world > 0 && sizes.world != ranks)
    fail(ErrorKind::kUsage, "--data-parallel-size ", sizes.data, " * ", sizes.model_ranks(),
         " ranks of a model are ", ranks, ", not --world-size ", sizes.world, "; leave one of them out");
  command.parallel.world = static_cast<int>(ranks);
  world.world = true;
  fixed.tensor = sizes.tensor;
  fixed.pipeline = sizes.pipeline;
  fixed.context = sizes.context;
}

/// The batch that --gradient-accumulation-steps makes, once all sizes are known.
int64_t accumulated_batch(const PlanCommand& command, const Fixed& fixed) {
  const int64_t steps = command.train.accumulation.value_or(1);
  if (!fixed.micro_batch || !fixed.tensor || !fixed.pipeline || command.parallel.world == 0)
    fail(ErrorKind::kUsage, "--gradient-accumulation-steps ", steps,
         ": a plan needs the batch of all ranks; give --global-batch-size, or --micro-batch-size, "
         "--data-parallel-size and the sizes of the model's cut");
  return steps * *fixed.micro_batch * (command.parallel.world / command.parallel.model_ranks());
}

/// What the plan computes in, as a profile calls it.
std::string dtype_of(const PlanProblem& p, const std::string& path) {
  if (p.precision == Precision::kFloat32) return "fp32";
  if (p.precision != Precision::kHalf)
    fail(ErrorKind::kUsage, "--calibrate ", path,
         ": plans in 8 or 4 bits take no profile; leave it out, or --fp8-format and --fp4-format");
  return p.fp16 ? "fp16" : "bf16";
}

DeviceRates profiled_rates(const PlanCommand& command, const PlanProblem& p, const std::string& text,
                           const std::string& path) {
  const int threads = command.train.threads;
  const CalibrationTarget target{.before = {*p.coefficients, p.machine.device},
                                 .local = command.plan.gpu == "local",
                                 .dtype = dtype_of(p, path),
                                 .threads = threads > 0 ? threads : usable_cpus(),
                                 .attention = flash_coefficient(p.software.attention)};
  return calibrated(parse_device_profile(text, path), target, point_pricer(p), path);
}

/// The rates to plan with; a profile of this machine's processor also says what the device is.
DeviceRates own_rates(const PlanCommand& command, PlanProblem problem) {
  const PlanOptions& plan = command.plan;
  DeviceRates rates{fitted_coefficients(), problem.machine.device};
  Coefficients& own = rates.coefficients;
  problem.coefficients = &own;
  if (!plan.coefficients.empty()) own = read_coefficients(plan.coefficients, own);
  std::vector<std::string> runs = plan.anchor.empty() ? std::vector<std::string>{} : std::vector{plan.anchor};
  std::string profiled;
  for (const std::string& path : plan.calibrations) {
    const std::string text = read_file(path);
    if (is_device_profile(text)) {
      if (!profiled.empty())
        fail(ErrorKind::kUsage, "--calibrate: ", profiled, " and ", path, " are both profiles; give one");
      profiled = path;
      rates = profiled_rates(command, problem, text, path);
      problem.machine.device = rates.device;
    } else if (is_link_log(text))
      own = with_links(parse_link_log(text, path), problem, path);
    else if (is_run_log(text))
      runs.push_back(path);
    else
      fail(ErrorKind::kData, path,
           ": neither a profile (megalith-autoplan profile), an output of nccl-tests (no column \"busbw\") "
           "nor a training log of Megatron-LM (no \"elapsed time per iteration (ms):\")");
  }
  if (runs.size() > 1)
    fail(ErrorKind::kUsage, "--calibrate, --anchor: ", join(runs, ", "),
         " are logs of several runs; give one");
  for (const std::string& path : runs) {  // after the links, whose share of its time is then known
    const MegatronLog log = read_run_log(path);
    own = anchored(log, logged_run(log, problem, path));
  }
  return rates;
}

/// Tokens that the run is to see: given, or those of its steps.
std::optional<Goal> goal_of(const PlanCommand& command, const PlanProblem& p) {
  const PlanOptions& plan = command.plan;
  if (!plan.train_tokens && !plan.deadline_days && !plan.budget) return std::nullopt;
  Goal goal{.gpu_hour = plan.gpu_hour, .days = plan.deadline_days, .budget = plan.budget};
  const double length = p.model.seq_length;
  if (plan.train_tokens)
    goal.tokens = *plan.train_tokens;
  else if (command.train.samples)
    goal.tokens = static_cast<double>(*command.train.samples) * length;
  else if (command.train.iters && p.global_batch > 0)
    goal.tokens = static_cast<double>(*command.train.iters) * static_cast<double>(p.global_batch) * length;
  else
    fail(ErrorKind::kUsage,
         "--deadline-days and --budget need --train-tokens, --train-samples, or --train-iters "
         "with --global-batch-size");
  return goal;
}

}  // namespace

void PlanCommand::add_to(Options& options) {
  static constexpr IgnoredOption kLlmacc[] = {{"task-type", IgnoredOption::kOne}};
  // How a router chooses and which kernels run: a plan is the same.
  static constexpr IgnoredOption kExperts[] = {{"moe-apply-probs-on-input"},
                                               {"moe-deepep-num-sms", IgnoredOption::kOne},
                                               {"moe-grouped-gemm", IgnoredOption::kMaybeOne},
                                               {"moe-per-layer-logging"},
                                               {"moe-permute-fusion", IgnoredOption::kMaybeOne},
                                               {"moe-router-bias-update-rate", IgnoredOption::kOne},
                                               {"moe-router-dtype", IgnoredOption::kOne},
                                               {"moe-router-fusion"},
                                               {"moe-router-padding-for-fp8"},
                                               {"moe-router-pre-softmax"},
                                               {"moe-router-topk-scaling-factor", IgnoredOption::kOne},
                                               {"moe-token-drop-policy", IgnoredOption::kOne},
                                               {"moe-z-loss-coeff", IgnoredOption::kOne},
                                               {"mscale", IgnoredOption::kOne},
                                               {"mscale-all-dim", IgnoredOption::kOne},
                                               {"mtp-loss-scaling-factor", IgnoredOption::kOne},
                                               {"rotary-scaling-factor", IgnoredOption::kOne}};
  static constexpr RefusedOption kUnplanned[] = {{"moe-*", "it is not planned; leave it out"}};
  options.add("Planning", plan).add("Model", model).add("Parallelism", parallel).add("Training", train);
  options.add("Data", data).add("Checkpoint", checkpoint).add("Tokenizer", tokenizer);
  options.add("PaddleNLP's names", paddle).add("MindFormers", mindformers);
  options.translate(translate_mindformers);
  options.ignore(ignored_megatron_options()).ignore(kLlmacc).ignore(kExperts);
  options.refuse(kUnplanned).refuse(refused_megatron_options());
}

void PlanCommand::check(Options& options) {
  if (!plan.hf.empty()) {  // the command line's own sizes stay
    ModelShape shape = parse_hf_shape(load_small(plan.hf), plan.hf);
    if (shape.latent_attention) shape.kv_channels = 0;  // follow from --v-head-dim
    options.adopt(to_json(shape), plan.hf, {"Model"});
  }
  if (!paddle.model.empty()) {
    const std::string file = paddle.model + "/config.json";
    const ModelConfig shape = file_exists(file) ? parse_hf_config(load_own_small(file), file).config
                                                : ModelSource(paddle.model).config();
    options.adopt(to_json(shape), paddle.model, {"Model"});
  }
  options.check({"Planning", "Model", "Tokenizer", "MindFormers"});
}

void PlanOptions::validate(Problems& problems) const {
  if (json && emit != JobKind::kNone) problems.add("--json and --emit both want stdout; give one");
  if (optimizer_instances > 1)
    problems.add("--num-distributed-optimizer-instances ", optimizer_instances,
                 " is not planned; leave it out, or give --sharding");
  if (budget && gpu_hour <= 0) problems.add("--budget ", *budget, " needs --gpu-hour-price");
  if (!simulate.empty() && (emit != JobKind::kNone || !html.empty()))
    problems.add("--simulate ", simulate, " prints steps in place of plans; leave out --emit and --html");
  if (!fp8_recipe.empty() && fp8_format.empty())
    problems.add("--fp8-recipe ", fp8_recipe, " needs --fp8-format");
}

PlanRequest plan_request(PlanCommand& command, const Options& given) {
  refuse_unplanned(command, given);
  command.train.finish();
  GivenWorld world = take_cluster(command, given);
  PlanRequest request;
  request.fixed = fixed_by(command, given);
  if (given.given("data-parallel-size")) take_data_ranks(command, world, request.fixed);
  PlanProblem& p = request.problem;
  p.model = command.model;
  if (p.model.vocab_size == 0) p.model.vocab_size = vocabulary(command.tokenizer);
  p.machine = machine_of(command, world);
  p.precision = precision_of(command);
  p.fp16 = command.train.fp16;
  if (command.plan.gpu == "local") {
    p.software = trainer_software();
    p.save_copy = wanted_save_copy(command.checkpoint);
    p.needs_save_copy = command.checkpoint.async_save.value_or(false);
  }
  p.software.attention = command.plan.attention;
  p.software.overlap_tensor = true;  // launch_options() turns on what is assumed
  p.software.expandable_segments = command.plan.expandable_segments;
  p.software.overlap_exchange = command.plan.overlap_exchange;
  p.max_global_batch = command.plan.max_global_batch;
  if (p.max_global_batch == 0) p.global_batch = command.train.global_batch;
  if (command.train.accumulation) {
    const int64_t batch = accumulated_batch(command, request.fixed);
    if (p.max_global_batch > 0 || (p.global_batch > 0 && p.global_batch != batch))
      fail(ErrorKind::kUsage, "--gradient-accumulation-steps ", *command.train.accumulation,
           " makes a global batch of ", batch,
           "; leave it out, or --global-batch-size and "
           "--max-global-batch-size");
    p.global_batch = batch;
  }
  if (p.max_global_batch == 0 && p.global_batch == 0)
    fail(ErrorKind::kUsage,
         "give --global-batch-size, or --max-global-batch-size for the largest that a plan allows");
  fix_pipeline(command, request);
  return request;
}

namespace {

/// Throws kUsage when an output is an input, the other output, or no file.
void check_files(const PlanCommand& command) {
  const PlanOptions& plan = command.plan;
  RunFiles files;
  files.reads("--gpu-file", plan.gpu_files);
  files.reads("--hf", plan.hf);
  files.reads("--coefficients", plan.coefficients);
  files.reads("--verify-log", plan.verify_log);
  files.reads("--anchor", plan.anchor);
  files.reads("--calibrate", plan.calibrations);
  files.writes("--html", plan.html, OutputKind::kStream);
  files.writes("--trace", command.train.trace, OutputKind::kStream);
  files.check();
}

}  // namespace

PlanAnswer answer(const PlanCommand& command, const PlanRequest& request) {
  PlanProblem problem = request.problem;
  const PlanOptions& plan = command.plan;
  check_files(command);
  const DeviceRates own = own_rates(command, problem);
  problem.machine.device = own.device;
  problem.coefficients = &own.coefficients;
  if (!plan.verify_log.empty()) {
    const MegatronLog log = read_run_log(plan.verify_log);
    return {verify_text(log, logged_run(log, problem, plan.verify_log)), true};
  }
  if (!plan.simulate.empty()) {
    if (const std::string beyond = beyond_our_trainer(problem.model); !beyond.empty())
      fail(ErrorKind::kUsage, "--simulate plays a step of this version's trainer, which has no option for ",
           beyond);
    const auto worlds = simulate_worlds(problem, request.fixed, simulated_worlds(plan.simulate));
    const bool some = std::any_of(worlds.begin(), worlds.end(), [](const auto& world) { return world.plan; });
    return {plan.json ? simulation_json(problem, worlds) : simulation_text(problem, worlds, command.columns),
            some};
  }
  SearchResult result =
      search_beside_saves(problem, request.fixed, static_cast<size_t>(plan.top), plan.search);
  const bool found = !result.plans.empty();
  Report report{.problem = problem, .result = result, .columns = command.columns, .gpu_hour = plan.gpu_hour};
  for (Plan& one : result.plans) {
    report.trainer.push_back(ask_trainer(problem, one.candidate));
    // On this machine's processor the trainer's own count is what will be used.
    if (plan.gpu == "local" && report.trainer.back().rank) one.memory = *report.trainer.back().rank;
  }
  report.sensitivities = sensitivity(problem, result.plans);
  if (const auto& lacking = found ? result.missed : result.closest)
    report.remedy = smallest_change(problem, *lacking);
  if (plan.explain || !plan.html.empty()) report.front = pareto_front(problem, request.fixed);
  if (plan.explain) report.inverse = inverse_questions(problem, request.fixed);
  report.goal = goal_of(command, problem);
  if (report.goal) report.scaling = scaling(problem, request.fixed, *report.goal);
  if (!plan.html.empty()) write_file(plan.html, plan_html(report), OutputKind::kStream);
  if (!command.train.trace.empty() && found)
    write_file(command.train.trace,
               chrome_trace(
                   play_pipeline(problem, result.plans.front(), result.plans.front().candidate.microbatches)),
               OutputKind::kStream);
  if (found && plan.emit != JobKind::kNone)
    return {job_text(problem, result.plans.front().candidate, plan.emit, false), true};
  if (plan.json) return {plan_json(report), found};
  if (!found) fail(ErrorKind::kUsage, "no plan fits\n", plan_text(report));
  return {plan_text(report), true};
}

}  // namespace megalith
