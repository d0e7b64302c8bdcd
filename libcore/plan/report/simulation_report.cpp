#include "libcore/plan/report/simulation_report.h"

#include "libcore/base/text.h"
#include "libcore/plan/report/plan_json.h"
#include "libcore/plan/report/plan_words.h"
#include "libcore/plan/search/goal.h"

namespace megalith {
namespace {

/// Tokens per second and utilisation of a simulated world's plan, from its simulated step.
struct SimulatedSpeed {
  double tokens, utilisation;
  SimulatedSpeed(const PlanProblem& problem, const SimulatedWorld& world)
      : tokens(static_cast<double>(world.plan->candidate.global_batch) * problem.model.seq_length /
               world.step.seconds),
        utilisation(model_flops_utilisation(with_devices(problem, world.devices), world.plan->candidate,
                                            world.step.seconds)) {}
};

TextTable::Row row_of_world(const PlanProblem& p, const SimulatedWorld& world) {
  const Candidate& c = world.plan->candidate;
  const SimulatedStep& step = world.step;
  const SimulatedSpeed speed(p, world);
  return row_of(world.devices, c.tensor, c.pipeline, c.context, c.data, c.chunks, c.micro_batch,
                c.global_batch, yes_no(c.sequence), static_cast<int>(c.sharding), recompute_text(c),
                seconds_text(step.seconds), seconds_text(step.work), seconds_text(step.tensor),
                seconds_text(step.pipeline), seconds_text(step.rest()),
                seconds_text(world.plan->time.total()), format_count(static_cast<int64_t>(speed.tokens)),
                format_fixed(100 * speed.utilisation, 1));
}

/// What the ranks of each world exchange; empty if they exchange nothing.
std::string traffic_text(const std::vector<SimulatedWorld>& worlds, size_t columns) {
  TextTable table{.rows = {{"devices", "group", "calls", "bytes"}}};
  for (const SimulatedWorld& world : worlds)
    for (const GroupTraffic& one : world.step.traffic)
      table.rows.push_back(
          row_of(world.devices, one.group, one.calls, format_bytes(static_cast<double>(one.bytes))));
  if (table.rows.size() == 1) return {};
  return concat("What one rank of each pipeline stage gives to its groups in that step\n",
                table_text(table, columns));
}

Json object_of_world(const PlanProblem& p, const SimulatedWorld& world) {
  if (!world.plan) return Json::Object{{"devices", world.devices}, {"lacking", world.reason}};
  const SimulatedSpeed speed(p, world);
  return Json::Object{{"devices", world.devices},
                      {"step_seconds", figure(world.step.seconds)},
                      {"ops_seconds", figure(world.step.work)},
                      {"tensor_seconds", figure(world.step.tensor)},
                      {"pipeline_seconds", figure(world.step.pipeline)},
                      {"tokens_per_second", figure(speed.tokens)},
                      {"mfu", figure(speed.utilisation)},
                      {"traffic", array_of_traffic(world.step.traffic)},
                      {"plan", plan_object(with_devices(p, world.devices), *world.plan)}};
}

}  // namespace

std::string simulation_text(const PlanProblem& p, const std::vector<SimulatedWorld>& worlds, size_t columns) {
  TextTable table{
      .rows = {{"devices", "tp", "pp", "cp", "dp", "vp", "micro", "global", "seq-par", "zero", "recompute",
                "step", "ops", "tp, cp", "pipeline", "rest", "closed form", "tokens/s", "MFU %"}}};
  std::string lacking;
  for (const SimulatedWorld& world : worlds)
    if (world.plan)
      table.rows.push_back(row_of_world(p, world));
    else
      lacking += concat(world.devices, " devices: ", world.reason, '\n');
  return fitted(concat("One step of this version's trainer, simulated on ", p.machine.device.name, " in ",
                       precision_text(p), "; its parts are those of the stage that works longest\n",
                       table_text(table, columns), lacking, traffic_text(worlds, columns)),
                columns);
}

std::string simulation_json(const PlanProblem& p, const std::vector<SimulatedWorld>& worlds) {
  Json::Array steps;
  for (const SimulatedWorld& world : worlds) steps.push_back(object_of_world(p, world));
  return Json(Json::Object{{"simulated", std::move(steps)}}).dump() + '\n';
}

}  // namespace megalith
