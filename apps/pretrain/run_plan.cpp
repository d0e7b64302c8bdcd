#include "apps/pretrain/run_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "apps/plan_dialects.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/config/launch_config.h"
#include "libcore/config/precedence.h"
#include "libcore/plan/price/trainer.h"
#include "libcore/plan/search/explain.h"

namespace megalith {
namespace {

/// Converts the run into a command for the planner.
PlanCommand command_of(const SettledRun& run, const RunRanks& ranks) {
  PlanCommand command;
  command.model = run.config.model;
  command.parallel = run.config.parallel;
  command.train = run.config.train;
  command.data = run.config.data;
  command.checkpoint = run.config.checkpoint;
  command.tokenizer = run.config.tokenizer;
  command.trains_here = true;
  command.data_ranks = data_ranks_of(run.paddle);
  PlanTarget& target = command.plan;
  target = run.target;
  GivenOptions& given = command.given;
  given.config_file = run.options.config_file();
  ModelConfig& model = command.model;
  given.add(fields_of(target), run.options);
  given.add(fields_of(model), run.options);
  given.add(fields_of(command.parallel), run.options);
  given.add(fields_of(command.train), run.options);
  if (!command.gives("gpu")) target.gpu = "local";
  command.parallel.world = ranks.world;
  command.parallel.local_world = ranks.here;
  given.anywhere.insert({"world-size", "local-world-size"});
  return command;
}

/// Completes and checks the command, as PlanCommand::check() does for megalith-autoplan. Checks the options
/// that only the plan depends on; the run's own options are checked already.
void complete(PlanCommand& command, const Options& options) {
  Problems problems;
  options.take_ignored(fields_of(command.plan), problems);
  command.model.finish();
  command.plan.validate(problems);
  command.model.validate(problems);
  problems.throw_if_any();
  const Muted said;  // the run itself logs which options it sets aside
  set_aside_contradicted(command.train, options);
  command.train.finish();
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
  PlanCommand command = command_of(run, ranks);
  complete(command, run.options);
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

PlanAnswer answer_as_autoplan(const std::vector<std::string>& arguments) {
  PlanCommand command;
  PlanDialects dialects;
  LaunchConfig launch;  // its options are accepted, but do not affect the plan
  Options options("autoplan", "Rank the ways to divide a model over devices, before paying for them.");
  command.add_to(options);
  dialects.add_to(options, command);
  options.add("Processes", launch);
  {
    const Muted said;  // the first reading of these options logged its notes already
    options.read(arguments);
  }
  dialects.check(command, options);
  return answer(plan_request(command));
}

}  // namespace megalith
