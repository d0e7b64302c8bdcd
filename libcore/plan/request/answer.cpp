#include "libcore/plan/request/answer.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/data/samples/split_plan.h"
#include "libcore/io/files/file.h"
#include "libcore/io/run/held_output.h"
#include "libcore/plan/log/run_log.h"
#include "libcore/plan/report/plan_html.h"
#include "libcore/plan/report/plan_json.h"
#include "libcore/plan/report/plan_text.h"
#include "libcore/plan/report/plan_words.h"
#include "libcore/plan/report/simulation_report.h"
#include "libcore/plan/request/order_of_run.h"
#include "libcore/plan/request/rates.h"
#include "libcore/plan/simulation/timeline.h"

namespace megalith {
namespace {

PlanAnswer compared(const PlanCommand& command, const PlanProblem& problem) {
  const std::string& path = command.plan.verify_log;
  const MegatronLog log = read_run_log(path);
  const LoggedRun run = logged_run(log, problem, path);
  return {command.plan.json ? verify_json(log, run) : verify_text(log, run), true};
}

PlanAnswer simulated(const PlanRequest& request, const PlanProblem& problem) {
  const PlanCommand& command = request.command;
  if (!takes_megatrons_options(problem.software))
    fail(ErrorKind::kUsage, "--simulate simulates a step of this version's trainer, not of --software ",
         problem.software.code_base, "; leave one of them out");
  if (const std::string beyond = beyond_our_trainer(problem.model); !beyond.empty())
    fail(ErrorKind::kUsage, "--simulate simulates a step of this version's trainer, which has no option for ",
         beyond);
  const auto worlds = simulate_worlds(problem, request.fixed, simulated_worlds(command.plan.simulate));
  if (problem.precision == Precision::kHalf && !command.train.bf16 && !command.train.fp16)
    log("--simulate: the step is in ", precision_text(problem),
        ", as all plans for GPUs are; a run needs the option --", precision_text(problem), " for that");
  const bool some = std::any_of(worlds.begin(), worlds.end(), [](const auto& world) { return world.plan; });
  return {command.plan.json ? simulation_json(problem, worlds)
                            : simulation_text(problem, worlds, command.columns),
          some};
}

/// The goal of the command, if it gives one. Its tokens are those of --train-tokens, or of the run's samples
/// or steps.
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

/// The job of the fastest plan, with our program where that runs it.
std::string job_of(const Report& report, JobKind kind) {
  const PlanProblem& p = report.problem;
  if (!takes_megatrons_options(p.software))
    fail(ErrorKind::kUsage, "--emit writes jobs of Megatron-LM and megalith-pretrain, not of --software ",
         p.software.code_base, "; leave one of them out");
  const std::string& refusal = report.trainer.front().refusal;
  if (p.tuning.finetunes && !refusal.empty())
    fail(ErrorKind::kUsage, "--emit writes a job of megalith-finetune, which does not run plan 1: ", refusal);
  if (!refusal.empty() && !megatron_trains(p))
    fail(ErrorKind::kUsage, "--emit writes no job of Megatron-LM, which has no ", megatron_lacks(p),
         ", and megalith-pretrain does not run plan 1: ", refusal);
  return job_text(p, report.result.plans.front().candidate, kind, refusal.empty());
}

/// The report of a search, with everything that the command asks about it.
Report report_of(const PlanRequest& request, const PlanProblem& problem, const SearchResult& result) {
  const PlanCommand& command = request.command;
  const PlanOptions& plan = command.plan;
  Report report{.problem = problem, .result = result, .columns = command.columns, .gpu_hour = plan.gpu_hour};
  for (const Plan& one : result.plans) report.trainer.push_back(ask_trainer_there(problem, one.candidate));
  report.sensitivities = sensitivity(problem, result.plans);
  if (result.closest)
    report.remedy = least_change_of_command(problem, request.fixed, *result.closest);
  else if (result.missed)
    report.remedy = least_change_of_plan(problem, *result.missed);
  if (plan.explain || !plan.html.empty()) report.front = pareto_front(problem, request.fixed);
  if (plan.explain) report.inverse = inverse_questions(problem, request.fixed);
  report.goal = goal_of(command, problem);
  if (report.goal) report.scaling = scaling(problem, request.fixed, *report.goal);
  return report;
}

void write_pages(const PlanCommand& command, const Report& report) {
  const HeldOutput held_page(command.plan.html), held_trace(command.train.trace);
  if (!command.plan.html.empty()) write_file(command.plan.html, plan_html(report), OutputKind::kStream);
  if (command.train.trace.empty() || report.result.plans.empty()) return;
  const Plan& best = report.result.plans.front();
  write_file(command.train.trace,
             chrome_trace(play_pipeline(report.problem, best, best.candidate.microbatches)),
             OutputKind::kStream);
}

PlanDetail detail_of(const PlanCommand& command) {
  if (command.plan.explain) return PlanDetail::kAll;
  return command.gives("top") ? PlanDetail::kPlans : PlanDetail::kAnswer;
}

/// Leaves the ranks what the order of samples does not take of the memory that they share. kUsage if it takes
/// all.
void leave_room(const NodeOrder& order, Machine& machine) {
  if (order.in_files || !machine.shares_memory) return;
  const double left = machine.device.memory * machine.local_world;
  require_index_memory({.held = order.bytes}, static_cast<size_t>(left));
  machine.device.memory -= static_cast<double>(order.bytes) / machine.local_world;
}

PlanAnswer ranked(const PlanRequest& request, PlanProblem problem) {
  const PlanOptions& plan = request.command.plan;
  const std::optional<NodeOrder> order = order_of_run(request);
  if (order) leave_room(*order, problem.machine);
  const SearchResult result =
      search_beside_saves(problem, request.fixed, static_cast<size_t>(plan.top), plan.search);
  const bool found = !result.plans.empty();
  Report report = report_of(request, problem, result);
  report.order = order;
  if (found) problem.run_words += report.trainer.front().options;
  write_pages(request.command, report);
  if (found && !plan.features.empty())
    log("the times are those with ", join(plan.features, ", "),
        ", which no line names: give the program that trains its own options for them");
  if (found && plan.emit != JobKind::kNone) {
    const std::string job = job_of(report, plan.emit);
    if (const auto gaps = job_gaps(job); !gaps.empty())
      log("fill in before you submit the job: ", join(gaps, ", "));
    return {job, true};
  }
  // Where no number of devices is given, the numbers that the goal needs are the answer.
  const bool answered = found || (request.command.parallel.world == 0 && !report.scaling.powers.empty());
  if (plan.json && !found)
    log("no plan fits; ", result.closest ? "\"closest\" holds the nearest one" : "no combination is legal");
  if (plan.json) return {plan_json(report), answered};
  const std::string text = plan_text(report, detail_of(request.command));
  if (!answered) fail(ErrorKind::kUsage, "no plan fits\n  ", join(split(trim(text), '\n'), "\n  "));
  return {text, true};
}

}  // namespace

PlanAnswer answer(const PlanRequest& request) {
  const DeviceRates rates = rates_of(request);
  PlanProblem problem = request.problem;
  problem.machine.device = rates.device;
  problem.coefficients = &rates.coefficients;
  const PlanOptions& plan = request.command.plan;
  problem.measured = !plan.calibrations.empty() || !plan.anchor.empty();
  PlanAnswer found = !request.command.plan.verify_log.empty() ? compared(request.command, problem)
                     : !request.command.plan.simulate.empty() ? simulated(request, problem)
                                                              : ranked(request, problem);
  if (!request.command.plan.json) found.text = printable_lines(found.text);
  return found;
}

}  // namespace megalith
