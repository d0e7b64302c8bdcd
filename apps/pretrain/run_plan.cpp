#include "apps/pretrain/run_plan.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "apps/plan_dialects.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/config/precedence.h"
#include "libcore/dialects/megatron/fates.h"
#include "libcore/plan/price/trainer.h"
#include "libcore/plan/search/explain.h"

namespace megalith {
namespace {

/// The kind of run in which the options of a question are refused (OptionFate::only).
constexpr std::string_view kTraining = "training";

/// Options of the planner that the program does not have: with them a plan is of another model than the
/// run's, or of a run that only Megatron-LM can do.
constexpr std::string_view kAbsent[] = {"hf", "verify-log", "use-megatron-fsdp",
                                        "overlap-moe-expert-parallel-comm"};

OptionFate fate_in_question(const Field& field) {
  return {
      .name = field.name,
      .remedy = "it shapes the answer of a plan; give megalith-autoplan, or --world-size without ranks here",
      .values = is_flag(field)         ? OptionFate::kMaybeOne
                : takes_several(field) ? OptionFate::kSeveral
                                       : OptionFate::kOne,
      .only = kTraining};
}

std::vector<OptionFate> fates_in_question() {
  static PlanOptions plan;  // static, since the fates refer to the fields' names
  static const std::vector<Field> kFields = fields_of(plan), kOwn = fields_of(static_cast<PlanTarget&>(plan));
  const std::vector<OptionFate> run = fates_in(kPretrain);
  std::vector<OptionFate> fates;
  for (const Field& field : kFields) {
    const auto same = [&](const Field& other) { return other.name == field.name; };
    if (std::any_of(kOwn.begin(), kOwn.end(), same) || find_fate(run, field.name) ||
        std::find(std::begin(kAbsent), std::end(kAbsent), field.name) != std::end(kAbsent))
      continue;
    fates.push_back(fate_in_question(field));
  }
  return fates;
}

/// Converts the run into a command for the planner, completes it and checks it, as PlanCommand::check() does
/// for megalith-autoplan. The run's own options are checked already.
PlanCommand command_of(const SettledRun& run) {
  PlanCommand command;
  command.plan = run.plan.options;
  command.model = run.config.model;
  command.parallel = run.config.parallel;
  command.train = run.config.train;
  command.data = run.config.data;
  command.checkpoint = run.config.checkpoint;
  command.tokenizer = run.config.tokenizer;
  command.data_ranks = data_ranks_of(run.paddle);
  GivenOptions& given = command.given;
  given.config_file = run.options.config_file();
  PlanTarget& target = command.plan;
  ModelConfig& model = command.model;
  given.add(fields_of(target), run.options);
  given.add(fields_of(model), run.options);
  given.add(fields_of(command.parallel), run.options);
  given.add(fields_of(command.train), run.options);
  given.anywhere.insert(run.plan.taken.begin(), run.plan.taken.end());
  Problems problems;
  command.model.finish();
  command.model.validate(problems);
  problems.throw_if_any();
  const Muted said;  // the run itself logs which options it sets aside
  set_aside_contradicted(command.train, run.options);
  command.train.finish();
  return command;
}

/// The command for a run that begins now, on these ranks.
PlanCommand command_for_ranks(const SettledRun& run, const RunRanks& ranks) {
  PlanCommand command = command_of(run);
  command.trains_here = true;
  if (!command.gives("gpu")) command.plan.gpu = "local";
  command.parallel.world = ranks.world;
  command.parallel.local_world = ranks.here;
  command.given.anywhere.insert({"world-size", "local-world-size"});
  return command;
}

struct Choice {
  const Plan* plan = nullptr;
  std::optional<WorstStage> rank = {};  // memory of the trainer's fullest rank
  int refused = 0;                      // number of faster plans that the trainer refuses
  std::string refusal = {};             // why the trainer refuses the first of them
};

Choice fastest_that_runs(const PlanProblem& problem, const SearchResult& result) {
  Choice choice;
  for (const Plan& plan : result.plans) {
    TrainerAnswer trainer = ask_trainer(problem, plan.candidate);
    if (trainer.rank &&
        trainer.rank->estimate.needed() > usable_memory(problem))  // may happen if --gpu names a device
      trainer.refusal = concat("it takes ", format_bytes(trainer.rank->estimate.needed()), " of ",
                               format_bytes(usable_memory(problem)), " a rank");
    if (trainer.refusal.empty()) {
      choice.plan = &plan;
      choice.rank = trainer.rank;
      return choice;
    }
    if (choice.refused++ == 0) choice.refusal = trainer.refusal;
  }
  return choice;
}

std::vector<std::string> reasons(const PlanProblem& p, const SearchResult& result, const Choice& choice) {
  const Plan& plan = *choice.plan;
  const Candidate& c = plan.candidate;
  const MemoryEstimate& estimate = choice.rank ? choice.rank->estimate : plan.memory.estimate;
  std::vector<std::string> lines;
  lines.push_back(concat("planned for ", p.machine.world, p.machine.world == 1 ? " rank" : " ranks", " on ",
                         p.machine.device.name, ": ", launch_options(p, c, true)));
  lines.push_back(concat(" > global batch ", c.global_batch, ": ", c.microbatches, " micro-batches of ",
                         c.micro_batch, " on each of ", c.data, " data-parallel ranks"));
  lines.push_back(concat(" > why: of ", result.candidates, " legal layouts it is the fastest that fits",
                         choice.refused > 0 ? " and that this trainer runs" : "", ", ",
                         format_fixed(plan.time.total(), 3), " s a step expected; it takes ",
                         format_bytes(estimate.needed()), " of ", format_bytes(p.machine.device.memory),
                         " a rank; held up by ", bottleneck(p, plan)));
  if (choice.refused > 0)
    lines.push_back(concat(" > passed over: ", choice.refused, " faster; the first: ", choice.refusal));
  const auto next = std::find_if(result.plans.begin(), result.plans.end(),
                                 [&](const Plan& other) { return &other > choice.plan; });
  if (next != result.plans.end())
    lines.push_back(concat(" > next best: ", launch_options(p, next->candidate, true), ", ",
                           format_fixed(next->time.total(), 3), " s"));
  return lines;
}

/// The JSON value of an option that the plan decided: a list of stages, a number, a word, or true for a flag.
Json member_of(const LaunchOption& option) {
  if (option.name == "pipeline-layers") return Json::Array{option.value};
  if (option.value.empty()) return true;
  if (const auto number = parse_int(option.value)) return *number;
  return option.value;
}

PlanRequest request_of(const SettledRun& run, const RunRanks& ranks) {
  PlanCommand command = command_for_ranks(run, ranks);
  const bool half = command.train.bf16 || command.train.fp16;
  PlanRequest request = plan_request(std::move(command));
  // The run computes in the precision of its own options, so the plan assumes it for any device.
  request.problem.precision = half ? Precision::kHalf : Precision::kFloat32;
  return request;
}

}  // namespace

std::vector<std::string> planned_groups() {
  return {"Planning", "Model", "Tokenizer", "PaddleNLP's names", "MindFormers"};
}

void PlanSettings::add_to(Options& app, std::function<bool()> is_question) {
  app.add("Planning", static_cast<PlanTarget&>(options));
  app.fates(fates_in_question, [is_question = std::move(is_question)](std::string_view kind) {
    return kind != kTraining || !is_question();
  });
}

void PlanSettings::take(Options& app) {
  Problems problems;
  taken = app.take_ignored(fields_of(options), problems);
  options.validate(problems);
  problems.throw_if_any();
}

RunPlan plan_run(const SettledRun& run, const RunRanks& ranks) {
  PlanRequest request = request_of(run, ranks);
  PlanProblem& problem = request.problem;
  const PlanOptions& plan = request.command.plan;
  constexpr size_t kLookedAt = 50;
  const SearchResult result = search_beside_saves(problem, request.fixed, kLookedAt, plan.search);
  if (result.plans.empty())
    fail(ErrorKind::kUsage, "--max-global-batch-size ", problem.max_global_batch, ": no layout of ",
         ranks.world, " ranks fits; megalith-autoplan --gpu ", plan.gpu,
         " with the options of this command shows what is missing");
  const Choice choice = fastest_that_runs(problem, result);
  if (!choice.plan)
    fail(ErrorKind::kUsage, "--max-global-batch-size ", problem.max_global_batch,
         ": this trainer runs none of the ", result.plans.size(),
         " best layouts; of the best: ", choice.refusal);
  std::vector<LaunchOption> decided = cut_options(problem, choice.plan->candidate, true);
  std::erase_if(decided, [](const LaunchOption& option) { return !option.decided; });
  return {std::move(decided), reasons(problem, result, choice)};
}

Json as_members(const std::vector<LaunchOption>& decided) {
  Json json = Json::object();
  for (const LaunchOption& option : decided) json.set(json_key(option.name), member_of(option));
  return json;
}

PlanAnswer answer_question(const SettledRun& run) {
  PlanCommand command = command_of(run);
  command.given.words = run_words(run.options);
  return answer(plan_request(std::move(command)));
}

}  // namespace megalith
