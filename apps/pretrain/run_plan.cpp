#include "apps/pretrain/run_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "apps/plan_dialects.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/config/launch_config.h"
#include "libcore/plan/launch/launch_options.h"
#include "libcore/plan/price/trainer.h"
#include "libcore/plan/search/explain.h"

namespace megalith {
namespace {

/// Reads a training command in the planner's terms.
struct Reader {
  PlanCommand command;
  PlanDialects dialects;
  LaunchConfig launch;  // not planned, but part of the command line
  Options options{"autoplan", "Rank the ways to divide a model over devices, before paying for them."};

  Reader(const std::vector<std::string>& words, bool trains_here) {
    command.trains_here = trains_here;
    command.add_to(options);
    dialects.add_to(options, trains_here ? kPretrain : kAutoplan);
    options.add("Processes", launch);
    // Muted: the program has already reported on these words when it read them, and the run reports itself
    // what it ignores, which differs from what a plan ignores.
    {
      const Muted said;
      options.read(words);
      if (trains_here) dialects.check(command, options);
    }
    if (!trains_here) dialects.check(command, options);
  }
};

Json value_of(const std::string& word) {
  if (const auto number = parse_int(word)) return *number;
  return word;
}

/// What the plan decided, by the names of JSON.
Json decided_options(const PlanProblem& problem, const Candidate& cut) {
  Json json = Json::object();
  for (const LaunchOption& option : cut_options(problem, cut, true)) {
    if (!option.decided) continue;
    const std::string name = json_key(option.name);
    if (name == "pipeline_layers")
      json.set(name, Json::Array{option.value});
    else
      json.set(name, option.value.empty() ? Json(true) : value_of(option.value));
  }
  return json;
}

std::string bytes(double n) {
  return format_bytes(n);
}

struct Choice {
  const Plan* plan = nullptr;
  std::optional<WorstStage> rank = {};  // what the trainer's fullest rank allocates
  int refused = 0;                      // faster plans that the trainer does not run
  std::string refusal = {};             // of the first of them
};

Choice fastest_that_runs(const PlanProblem& problem, const SearchResult& result) {
  Choice choice;
  for (const Plan& plan : result.plans) {
    TrainerAnswer trainer = ask_trainer(problem, plan.candidate);
    if (trainer.rank &&
        trainer.rank->estimate.needed() > usable_memory(problem))  // for a device that is named
      trainer.refusal = concat("it takes ", bytes(trainer.rank->estimate.needed()), " of ",
                               bytes(usable_memory(problem)), " a rank");
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
                         bytes(estimate.needed()), " of ", bytes(p.machine.device.memory),
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

}  // namespace

RunPlan plan_run(const std::vector<std::string>& words, const RunRanks& ranks) {
  std::vector<std::string> told = words;
  for (const auto& [option, size] :
       {std::pair{"--world-size", ranks.world}, {"--local-world-size", ranks.here}}) {
    told.push_back(option);
    told.push_back(std::to_string(size));
  }
  Reader reader(told, true);
  if (!reader.command.gives("gpu")) reader.command.plan.gpu = "local";
  PlanRequest request = plan_request(reader.command);
  PlanProblem& problem = request.problem;
  // Whatever it is planned for, the run computes in the precision of its own options.
  const TrainConfig& train = reader.command.train;
  problem.precision = train.bf16 || train.fp16 ? Precision::kHalf : Precision::kFloat32;
  constexpr size_t kLookedAt = 50;
  const SearchResult result =
      search_beside_saves(problem, request.fixed, kLookedAt, reader.command.plan.search);
  if (result.plans.empty())
    fail(ErrorKind::kUsage, "--max-global-batch-size ", problem.max_global_batch, ": no layout of ",
         ranks.world, " ranks fits; megalith-autoplan --gpu ", reader.command.plan.gpu,
         " with the options of this command shows what is missing");
  const Choice choice = fastest_that_runs(problem, result);
  if (!choice.plan)
    fail(ErrorKind::kUsage, "--max-global-batch-size ", problem.max_global_batch,
         ": this trainer runs none of the ", result.plans.size(),
         " best layouts; of the best: ", choice.refusal);
  return {decided_options(problem, choice.plan->candidate), reasons(problem, result, choice)};
}

PlanAnswer plan_alone(const std::vector<std::string>& words) {
  Reader reader(words, false);
  return answer(plan_request(reader.command));
}

}  // namespace megalith
