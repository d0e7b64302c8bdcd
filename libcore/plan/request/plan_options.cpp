#include "libcore/plan/request/plan_options.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/config/precedence.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/io/files/file.h"
#include "libcore/io/run/run_files.h"
#include "libcore/json/small_json.h"
#include "libcore/plan/log/link_log.h"
#include "libcore/plan/log/run_log.h"
#include "libcore/plan/price/kernel_rates.h"
#include "libcore/plan/profile/calibrate.h"
#include "libcore/plan/report/plan_html.h"
#include "libcore/plan/report/plan_json.h"
#include "libcore/plan/report/plan_text.h"
#include "libcore/plan/report/simulation_report.h"
#include "libcore/plan/request/fixed.h"
#include "libcore/plan/request/outputs.h"
#include "libcore/plan/request/run_words.h"
#include "libcore/plan/request/world.h"
#include "libcore/plan/shape/hf_shape.h"
#include "libcore/plan/simulation/timeline.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "libcore/train/step/memory.h"

namespace megalith {
namespace {

/// The tokenizer's ids where its files are on this machine; a plan is often made elsewhere, then GPT-2's.
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
  const bool half = plan.gpu != "local" || command.train.bf16 || command.train.fp16;
  return half ? Precision::kHalf : Precision::kFloat32;
}

void refuse_unplanned(const PlanCommand& command, const Options& given) {
  if (command.train.fp16 && command.train.bf16)
    fail(ErrorKind::kUsage, "--fp16 and --bf16 exclude each other; give one of them");
  const bool half = command.train.bf16 || command.train.fp16 || command.plan.gpu == "local";
  if (given.given("bf16") && !half && !command.trains_here)  // our trainer's runs say it themselves
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
  if (!command.plan.hf.empty() && all_experts && given.on_command_line("ffn-hidden-size") &&
      !given.on_command_line("moe-ffn-hidden-size"))
    fail(ErrorKind::kUsage, "--ffn-hidden-size ", m.ffn_hidden, " changes nothing of ", command.plan.hf,
         ", whose layers all have experts; give --moe-ffn-hidden-size");
  if (given.given("rampup-batch-size"))
    fail(ErrorKind::kUsage,
         "--rampup-batch-size: a plan is for one batch of all ranks; give --global-batch-size alone");
}

/// The batch that --gradient-accumulation-steps makes, once all sizes are known.
int64_t accumulated_batch(const PlanCommand& command, const Fixed& fixed) {
  const int64_t steps = command.train.accumulation.value_or(1);
  const bool cut = fixed.tensor && fixed.pipeline && command.parallel.world > 0;
  if (!fixed.micro_batch || (!fixed.data && !cut))
    fail(ErrorKind::kUsage, "--gradient-accumulation-steps ", steps,
         ": a plan needs the batch of all ranks; give --global-batch-size, or --micro-batch-size, "
         "--data-parallel-size and the sizes of the model's cut");
  const int data = fixed.data ? *fixed.data : command.parallel.world / command.parallel.model_ranks();
  return steps * *fixed.micro_batch * data;
}

/// The batch that is given stays; --max-global-batch-size is then no more than its bound.
void set_batch(const PlanCommand& command, PlanRequest& request) {
  PlanProblem& p = request.problem;
  p.max_global_batch = command.plan.max_global_batch;
  p.global_batch = command.train.global_batch;
  if (command.train.accumulation) {
    const int64_t batch = accumulated_batch(command, request.fixed);
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

/// What the plan computes in, as a profile calls it.
std::string dtype_of(const PlanProblem& p, const std::string& path) {
  if (p.precision == Precision::kFloat32) return "fp32";
  if (p.precision != Precision::kHalf)
    fail(ErrorKind::kUsage, "--calibrate ", path,
         ": plans in 8 or 4 bits take no profile; leave it out, or --fp8-format and --fp4-format");
  return p.fp16 ? "fp16" : "bf16";
}

/// A rank's share of the rates of a device that was measured as a whole.
DeviceRates profiled_rates(const PlanCommand& command, PlanProblem p, const std::string& text,
                           const std::string& path) {
  const int threads = command.train.threads, ranks = p.machine.local_world;
  set_local_world(p.machine, 1);
  const CalibrationTarget target{.before = {*p.coefficients, p.machine.device},
                                 .local = command.plan.gpu == "local",
                                 .dtype = dtype_of(p, path),
                                 .threads = threads > 0 ? threads : usable_cpus(),
                                 .attention = flash_coefficient(p.software.attention)};
  DeviceRates rates = calibrated(parse_device_profile(text, path), target, point_pricer(p), path);
  p.machine.device = rates.device;
  set_local_world(p.machine, ranks);
  rates.device = p.machine.device;
  return rates;
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

/// The job of the fastest plan; of this machine's processor, where only our trainer runs, of the fastest that
/// it runs.
std::string job_of(const Report& report, JobKind kind) {
  const PlanProblem& p = report.problem;
  if (!p.trained_here) return job_text(p, report.result.plans.front().candidate, kind, false);
  for (size_t i = 0; i < report.result.plans.size(); ++i)
    if (report.trainer[i].refusal.empty()) return job_text(p, report.result.plans[i].candidate, kind, true);
  fail(ErrorKind::kUsage, "--emit: of the ", report.result.plans.size(),
       " best plans for this machine's processor this version's trainer runs none; of the first: ",
       report.trainer.front().refusal);
}

/// Throws kUsage when an output is an input, the other output, or no file.
void check_files(const PlanCommand& command, const std::string& config_file) {
  const PlanOptions& plan = command.plan;
  RunFiles files;
  files.reads("--config", config_file);
  files.reads("--cluster", plan.cluster);
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

void PlanCommand::add_to(Options& options) {
  options.add("Planning", plan).add("Model", model).add("Parallelism", parallel).add("Training", train);
  options.add("Data", data).add("Checkpoint", checkpoint).add("Tokenizer", tokenizer);
}

void PlanCommand::check(Options& options, std::vector<std::string> groups) {
  set_aside_contradicted(train, options);
  if (!plan.hf.empty()) {  // the command line's own sizes stay
    plan.hf = hf_config_file(plan.hf);
    ModelShape shape = parse_hf_shape(load_small(plan.hf), plan.hf);
    if (shape.latent_attention) shape.kv_channels = 0;  // follow from --v-head-dim
    options.adopt(to_json(shape), plan.hf, {"Model"});
  }
  if (!model_folder.empty()) {
    const std::string file = model_folder + "/config.json";
    const ModelConfig shape = file_exists(file) ? parse_hf_config(load_own_small(file), file).config
                                                : ModelSource(model_folder).config();
    options.adopt(to_json(shape), model_folder, {"Model"});
  }
  if (!plan.verify_log.empty())  // the rest of the log is read where it is compared
    options.adopt(needed_of(read_run_log(plan.verify_log)), plan.verify_log,
                  {"Model", "Training", "Parallelism"});
  groups.insert(groups.end(), {"Planning", "Model", "Tokenizer"});
  options.check(groups);
}

void PlanOptions::validate(Problems& problems) const {
  if (optimizer_instances > 1)
    problems.add("--num-distributed-optimizer-instances ", optimizer_instances,
                 " is not planned; leave it out, or give --sharding");
  if (budget && gpu_hour <= 0) problems.add("--budget ", *budget, " needs --gpu-hour-price");
  if (!fp8_recipe.empty() && fp8_format.empty())
    problems.add("--fp8-recipe ", fp8_recipe, " needs --fp8-format");
}

PlanRequest plan_request(PlanCommand& command, const Options& given) {
  check_outputs(command);
  check_files(command, given.config_file());
  refuse_unplanned(command, given);
  command.train.finish();
  GivenWorld world = take_world(command, given);
  PlanRequest request;
  fix_sizes(command, given, request);
  take_data_ranks(command, given, world, request.fixed);
  PlanProblem& p = request.problem;
  p.model = command.model;
  if (p.model.vocab_size == 0) p.model.vocab_size = vocabulary(command.tokenizer);
  p.machine = machine_of(command, world);
  p.precision = precision_of(command);
  p.fp16 = command.train.fp16 || !p.machine.device.bfloat16;
  const RunWords words = run_words(given);
  p.run_words = words.ours;
  p.megatron_words = words.megatron;
  p.fp8_format = command.plan.fp8_format;
  p.fp8_recipe = command.plan.fp8_recipe;
  if (command.plan.gpu == "local") {
    p.trained_here = true;
    p.software = trainer_software();
    p.save_copy = wanted_save_copy(command.checkpoint);
    p.needs_save_copy = command.checkpoint.async_save.value_or(false);
  }
  p.software.attention = attention_of(command, given);
  p.software.overlap_messages = command.plan.overlap_messages;
  if (command.plan.reduce_in_bf16 && command.plan.gpu == "local")
    fail(ErrorKind::kUsage,
         "--grad-reduce-in-bf16: on this machine's processor gradients are fp32; leave it out");
  if (command.plan.reduce_in_bf16) p.software.gradient_bytes = 2;
  p.software.overlap_tensor = true;  // launch_options() turns on what is assumed
  p.software.expandable_segments = command.plan.expandable_segments;
  p.software.overlap_exchange = command.plan.overlap_exchange;
  set_batch(command, request);
  return request;
}

PlanAnswer answer(const PlanCommand& command, const PlanRequest& request) {
  PlanProblem problem = request.problem;
  const PlanOptions& plan = command.plan;
  const DeviceRates own = own_rates(command, problem);
  problem.machine.device = own.device;
  problem.coefficients = &own.coefficients;
  if (!plan.verify_log.empty()) {
    const MegatronLog log = read_run_log(plan.verify_log);
    const LoggedRun run = logged_run(log, problem, plan.verify_log);
    return {plan.json ? verify_json(log, run) : verify_text(log, run), true};
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
  const SearchResult result =
      search_beside_saves(problem, request.fixed, static_cast<size_t>(plan.top), plan.search);
  const bool found = !result.plans.empty();
  Report report{.problem = problem, .result = result, .columns = command.columns, .gpu_hour = plan.gpu_hour};
  for (const Plan& one : result.plans) report.trainer.push_back(ask_trainer(problem, one.candidate));
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
  if (found && plan.emit != JobKind::kNone) return {job_of(report, plan.emit), true};
  if (plan.json && !found)
    log("no plan fits; ", result.closest ? "\"closest\" says which lacks least" : "no combination is legal");
  if (plan.json) return {plan_json(report), found};
  if (!found) fail(ErrorKind::kUsage, "no plan fits\n", plan_text(report));
  return {plan_text(report), true};
}

}  // namespace megalith
