#include "libcore/plan/report/plan_text.h"

#include <algorithm>
#include <span>
#include <sstream>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/base/text_table.h"
#include "libcore/json/json.h"
#include "libcore/plan/launch/launch.h"
#include "libcore/plan/report/scaling_text.h"

namespace megalith {
namespace {

using Row = TextTable::Row;

std::string gigabytes(double bytes) {
  return format_fixed(bytes / 1e9, 2);
}

/// Lines that are longer than `columns` broken, commands so that a shell still takes them.
std::string fitted(const std::string& text, size_t columns) {
  if (columns == 0) return text;
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n')) {
    const bool command = line.starts_with("  ") && line.find(" --") != std::string::npos;
    lines.push_back(wrapped(line, columns, "    ", command ? " \\" : ""));
  }
  return join(lines, "\n");
}

std::string yes_no(bool value) {
  return value ? "yes" : "-";
}

std::string seconds_text(double seconds) {
  return seconds < 1 ? format_fixed(seconds * 1e3, 1) + " ms" : format_fixed(seconds, 2) + " s";
}

std::string layers_text(const PlanProblem& p, const Candidate& c) {
  if (c.pipeline == 1) return std::to_string(p.model.layers);
  const int first = stage_layers(p, c, 0), middle = stage_layers(p, c, c.pipeline / 2),
            last = stage_layers(p, c, c.pipeline - 1);
  if (first == middle && last == middle) return std::to_string(first);
  return c.pipeline == 2 ? concat(first, '+', last) : concat(first, '+', middle, '+', last);
}

/// Ranks of the experts and of each one's matrices, after the sizes of every model.
void insert_experts(const PlanProblem& p, Row& row, const std::string& expert,
                    const std::string& expert_tensor) {
  constexpr std::ptrdiff_t kAfterData = 5;
  if (p.model.has_experts()) row.insert(row.begin() + kAfterData, {expert, expert_tensor});
}

std::string ranked_table(const Report& r) {
  const PlanProblem& p = r.problem;
  std::vector<Row> table = {{"#", "tp", "pp", "cp", "dp", "vp", "layers", "micro", "global", "seq-par",
                             "zero", "recompute", "memory GB", "free GB", "step", "80 % within", "tokens/s",
                             "MFU %", "runs on"}};
  insert_experts(p, table[0], "ep", "etp");
  for (size_t i = 0; i < r.result.plans.size(); ++i) {
    const Plan& plan = r.result.plans[i];
    const Candidate& c = plan.candidate;
    const double used = plan.memory.estimate.needed(), seconds = plan.time.total();
    const Interval range = step_interval(p, c, seconds);
    table.push_back({std::to_string(i + 1), std::to_string(c.tensor), std::to_string(c.pipeline),
                     std::to_string(c.context), std::to_string(c.data), std::to_string(c.chunks),
                     layers_text(p, c), std::to_string(c.micro_batch), std::to_string(c.global_batch),
                     yes_no(c.sequence), std::to_string(static_cast<int>(c.sharding)), recompute_text(c),
                     gigabytes(used), gigabytes(usable_memory(p) - used), seconds_text(seconds),
                     seconds_text(range.low) + " - " + seconds_text(range.high),
                     format_count(static_cast<int64_t>(plan.tokens_per_second(p))),
                     format_fixed(100 * model_flops_utilisation(p, c, seconds), 1),
                     r.trainer[i].refusal.empty() ? "megalith" : "Megatron only"});
    insert_experts(p, table.back(), std::to_string(c.expert), std::to_string(c.expert_tensor));
  }
  return table_text({.rows = table}, r.columns);
}

struct EstimateColumn {
  const char* name;
  double (*value)(const MemoryEstimate&);
};
constexpr EstimateColumn kSums[] = {
    {"cached", [](const MemoryEstimate& b) { return b.cached; }},
    {"allocated", [](const MemoryEstimate& b) { return b.allocated(); }},
    {"reserved", [](const MemoryEstimate& b) { return b.reserved(); }},
    {"device", [](const MemoryEstimate& b) { return b.device(); }},
};

/// The columns of a table, or of JSON, which has all of them.
std::vector<EstimateColumn> estimate_columns(std::span<const MemoryPart> parts) {
  std::vector<EstimateColumn> columns;
  for (const MemoryPart& part : parts) columns.push_back({part.name, part.value});
  columns.insert(columns.end(), std::begin(kSums), std::end(kSums));
  return columns;
}

struct TimeColumn {
  const char* name;
  double StepTime::*value;
};
constexpr TimeColumn kTime[] = {{"compute", &StepTime::compute},
                                {"recompute", &StepTime::recompute},
                                {"tensor comm", &StepTime::tensor_comm},
                                {"expert comm", &StepTime::expert_comm},
                                {"pipeline comm", &StepTime::pipeline_comm},
                                {"bubble", &StepTime::bubble},
                                {"data comm", &StepTime::data_comm},
                                {"optimizer", &StepTime::optimizer},
                                {"fixed", &StepTime::fixed},
                                {"stragglers", &StepTime::straggler}};

/// A line for each stage that is not as the one before.
std::string estimate_table(const Report& r, const Candidate& c) {
  const PlanProblem& p = r.problem;
  std::vector<Row> table = {{"stage", "layers"}};
  const std::vector<EstimateColumn> columns = estimate_columns(memory_parts(p));
  for (const EstimateColumn& column : columns) table[0].push_back(column.name);
  std::string alike;
  Row before;
  int stage = 0;
  for (const MemoryEstimate& estimate : stage_estimates(p, c)) {
    Row row = {std::to_string(stage), std::to_string(stage_layers(p, c, stage))};
    for (const EstimateColumn& column : columns) row.push_back(gigabytes(column.value(estimate)));
    if (stage > 0 && std::equal(row.begin() + 1, row.end(), before.begin() + 1))
      alike += concat(alike.empty() ? "" : ", ", stage);
    else
      table.push_back(row);
    before = std::move(row);
    ++stage;
  }
  return table_text({.rows = table}, r.columns) +
         (alike.empty() ? "" : "as the stage before: " + alike + '\n');
}

std::string time_line(const StepTime& time) {
  std::string out;
  for (const TimeColumn& column : kTime)
    if (time.*column.value > 0)
      out += (out.empty() ? "" : ", ") + std::string(column.name) + ' ' + seconds_text(time.*column.value);
  return out + '\n';
}

/// What the tokens' spread over the experts does to a step; nothing for a dense model.
std::string imbalance_line(const PlanProblem& p, const Plan& plan) {
  if (!p.model.has_experts()) return {};
  const TokenImbalance load = p.model.rank_imbalance(plan.candidate.expert);
  const Interval range = imbalance_interval(p, plan.candidate);
  return concat("token imbalance: the fullest rank of experts gets ", format_fixed(load.low, 2), " to ",
                format_fixed(load.high, 2), " of the mean, a step then takes ", seconds_text(range.low),
                " to ", seconds_text(range.high), "; memory is for ", format_fixed(load.high, 2), '\n');
}

std::string remedy_line(const Report& r) {
  return "  " + (r.remedy ? "fits with " + r.remedy->words : "no single change makes it fit") + '\n';
}

void tell_failure(std::ostream& out, const Report& r) {
  if (!r.result.closest) {
    out << "no combination is legal\n";
    return;
  }
  const Plan& plan = *r.result.closest;
  const double lacking = plan.memory.estimate.needed() - usable_memory(r.problem);
  out << "nothing fits; the closest takes " << gigabytes(plan.memory.estimate.needed()) << " GB on stage "
      << plan.memory.stage << ", " << gigabytes(lacking) << " GB more than a device has, with\n  "
      << launch_options(r.problem, plan.candidate) << '\n'
      << remedy_line(r) << estimate_table(r, plan.candidate);
}

void tell_missed(std::ostream& out, const Report& r) {
  if (!r.result.missed) return;
  const Plan& plan = *r.result.missed;
  out << "\nfaster (" << seconds_text(plan.time.total()) << "), but "
      << gigabytes(plan.memory.estimate.needed() - usable_memory(r.problem)) << " GB short on stage "
      << plan.memory.stage << ": " << launch_options(r.problem, plan.candidate) << '\n';
  out << remedy_line(r);
}

std::string sensitivity_table(const Report& r) {
  std::vector<Row> table = {{"10 % less or more", "step", "step", "fastest plan"}};
  for (const Sensitivity& s : r.sensitivities)
    table.push_back({s.what, seconds_text(s.less), seconds_text(s.more),
                     concat(s.winner_less + 1, ", ", s.winner_more + 1)});
  return table_text({.rows = table}, r.columns);
}

std::string front_table(const Report& r) {
  std::vector<Row> table = {{"step", "free GB", "MWh for 1e12 tokens", "days", "cost", "options"}};
  for (const Plan& plan : r.front) {
    const TrillionTokens t = trillion_tokens(r.problem, plan, r.gpu_hour);
    table.push_back({seconds_text(plan.time.total()),
                     gigabytes(usable_memory(r.problem) - plan.memory.estimate.needed()),
                     format_fixed(t.megawatt_hours, 0), format_fixed(t.days, 1),
                     r.gpu_hour > 0 ? format_count(static_cast<int64_t>(t.cost)) : "-",
                     launch_options(r.problem, plan.candidate)});
  }
  return table_text({.rows = table}, r.columns);
}

void tell_trainer(std::ostream& out, const TrainerAnswer& trainer) {
  if (trainer.rank)
    out << "megalith-pretrain runs plan 1 and takes " << gigabytes(trainer.rank->estimate.needed())
        << " GB on its fullest rank\n";
  else
    out << "plan 1 is for Megatron-LM only: " << trainer.refusal << '\n';
}

constexpr std::pair<const char*, Launcher> kLaunchers[] = {
    {"torchrun", Launcher::kTorchrun}, {"srun", Launcher::kSrun}, {"mpirun", Launcher::kMpirun}};

void tell_best(std::ostream& out, const Report& r) {
  const PlanProblem& p = r.problem;
  const Plan& best = r.result.plans.front();
  out << ranked_table(r) << "\nmemory of plan 1 by pipeline stage, GB\n"
      << estimate_table(r, best.candidate) << "\ntime of a step of plan 1: " << time_line(best.time)
      << imbalance_line(p, best) << "bottleneck: " << bottleneck(p, best) << "\n\n"
      << sensitivity_table(r) << "\noptions of plan 1\n  " << launch_options(p, best.candidate) << '\n';
  tell_trainer(out, r.trainer.front());
  const bool ours = r.trainer.front().refusal.empty();
  for (const auto& [name, launcher] : kLaunchers)
    out << "  " << launch_line(p, best.candidate, launcher, false) << '\n';
  if (ours)
    for (const auto& [name, launcher] : kLaunchers)
      out << "  " << launch_line(p, best.candidate, launcher, true) << '\n';
  tell_missed(out, r);
  if (!r.front.empty()) out << "\nfastest plans for less and less memory\n" << front_table(r);
}

void tell_inverse(std::ostream& out, const Report& r) {
  const Inverse& i = *r.inverse;
  out << "\nfewest devices (powers of two, or all) " << i.least_devices << "; longest sequence (doubled) "
      << i.longest_sequence << "; most layers of this width (doubled) " << i.most_layers << '\n';
}

/// "8", or where links join another number than a machine has "4 a machine, 72".
std::string joined_text(const Machine& machine) {
  const int joined = std::min(machine.domain(), machine.world);
  return joined == machine.local_world ? std::to_string(joined)
                                       : concat(machine.local_world, " a machine, ", joined);
}

const char* precision_text(const PlanProblem& p) {
  switch (p.precision) {
    case Precision::kFloat32:
      return "fp32";
    case Precision::kHalf:
      return p.fp16 ? "fp16" : "bf16";
    case Precision::kFp8:
      return "fp8";
    case Precision::kMxfp8:
      return "mxfp8";
    case Precision::kNvfp4:
      return "nvfp4";
  }
  return "";
}

Json memory_object(const MemoryEstimate& estimate) {
  Json out = Json::object();
  for (const EstimateColumn& column : estimate_columns(kMemoryParts))
    out.set(column.name, figure(column.value(estimate)));
  return out;
}

Json plan_object(const PlanProblem& p, const Plan& plan) {
  const Candidate& c = plan.candidate;
  Json time = Json::object(), entry = Json::object(), layers = Json::array();
  for (const TimeColumn& column : kTime) time.set(column.name, figure(plan.time.*column.value));
  for (int stage = 0; stage < c.pipeline; ++stage) layers.push_back(stage_layers(p, c, stage));
  const Interval range = step_interval(p, c, plan.time.total());
  entry.set("tensor", c.tensor);
  entry.set("pipeline", c.pipeline);
  entry.set("context", c.context);
  entry.set("data", c.data);
  if (p.model.has_experts()) {
    const TokenImbalance load = p.model.rank_imbalance(c.expert);
    const Interval ends = imbalance_interval(p, c);
    entry.set("expert", c.expert);
    entry.set("expert_tensor", c.expert_tensor);
    entry.set("expert_data", c.expert_data());
    entry.set("token_imbalance", Json::Array{figure(load.low), figure(load.high)});
    entry.set("step_seconds_of_imbalance", Json::Array{figure(ends.low), figure(ends.high)});
  }
  entry.set("chunks", c.chunks);
  entry.set("stage_layers", std::move(layers));
  entry.set("micro_batch", c.micro_batch);
  entry.set("global_batch", c.global_batch);
  entry.set("sequence_parallel", c.sequence);
  entry.set("zero_stage", static_cast<int>(c.sharding));
  entry.set("recompute", recompute_text(c));
  entry.set("memory_stage", plan.memory.stage);
  entry.set("memory_bytes", memory_object(plan.memory.estimate));
  entry.set("step_seconds", figure(plan.time.total()));
  entry.set("step_seconds_low", figure(range.low));
  entry.set("step_seconds_high", figure(range.high));
  entry.set("time_seconds", std::move(time));
  entry.set("bottleneck", bottleneck(p, plan));
  entry.set("tokens_per_second", figure(plan.tokens_per_second(p)));
  entry.set("mfu", figure(model_flops_utilisation(p, c, plan.time.total())));
  entry.set("options", launch_options(p, c));
  return entry;
}

/// Tells of plan 1 the memory of its stages, and how to start it with Megatron-LM's program or, where it runs
/// it, ours.
void set_best(Json& root, const Report& r) {
  const PlanProblem& p = r.problem;
  const Candidate& c = r.result.plans.front().candidate;
  Json stages = Json::array(), launch = Json::object();
  for (const MemoryEstimate& estimate : stage_estimates(p, c)) stages.push_back(memory_object(estimate));
  for (const bool ours : {false, true}) {
    if (ours && !r.trainer.front().refusal.empty()) break;
    Json lines = Json::object();
    for (const auto& [name, launcher] : kLaunchers) lines.set(name, launch_line(p, c, launcher, ours));
    launch.set(ours ? "megalith" : "megatron", std::move(lines));
  }
  root.set("stage_memory_bytes", std::move(stages));
  root.set("launch", std::move(launch));
}

Json rejected_object(const SearchResult& r) {
  Json out = Json::object();
  for (const auto& [rule, count] : r.rejected) {
    Json entry = Json::object();
    entry.set("families", count);
    entry.set("example", r.example.at(rule));
    out.set(rule, std::move(entry));
  }
  return out;
}

Json closest_object(const Report& r) {
  const Plan& plan = *r.result.closest;
  Json out = plan_object(r.problem, plan);
  out.set("lacking_bytes", figure(plan.memory.estimate.needed() - usable_memory(r.problem)));
  return out;
}

Json scale_object(const Report& r, const Scale& scale) {
  Json out = Json::object();
  out.set("devices", scale.devices);
  out.set("days", figure(scale.days));
  if (r.gpu_hour > 0) out.set("cost", figure(scale.cost));
  out.set("plan", plan_object(with_devices(r.problem, scale.devices), scale.plan));
  return out;
}

Json scaling_object(const Report& r) {
  Json out = Json::object(), powers = Json::array();
  out.set("tokens", r.goal->tokens);
  for (const Scale& scale : r.scaling.powers) powers.push_back(scale_object(r, scale));
  out.set("powers_of_two", std::move(powers));
  if (r.scaling.fewest) out.set("fewest", scale_object(r, *r.scaling.fewest));
  if (r.scaling.fastest) out.set("soonest", scale_object(r, *r.scaling.fastest));
  return out;
}

/// A simulated world's plan at the simulated speed.
struct SimulatedSpeed {
  double tokens, utilisation;
  SimulatedSpeed(const PlanProblem& problem, const SimulatedWorld& world)
      : tokens(static_cast<double>(world.plan->candidate.global_batch) * problem.model.seq_length /
               world.step.seconds),
        utilisation(model_flops_utilisation(with_devices(problem, world.devices), world.plan->candidate,
                                            world.step.seconds)) {}
};

}  // namespace

Json figure(double value) {
  return parse_double(format_scientific(value, 8)).value_or(value);
}

std::string simulation_text(const PlanProblem& p, const std::vector<SimulatedWorld>& worlds, size_t columns) {
  std::vector<Row> table = {{"devices", "tp", "pp", "cp", "dp", "vp", "micro", "global", "seq-par", "zero",
                             "recompute", "step", "ops", "tp, cp", "pipeline", "rest", "closed form",
                             "tokens/s", "MFU %"}};
  std::string lacking;
  for (const SimulatedWorld& world : worlds) {
    if (!world.plan) {
      lacking += concat(world.devices, " devices: ", world.lacking, '\n');
      continue;
    }
    const Candidate& c = world.plan->candidate;
    const SimulatedSpeed speed(p, world);
    table.push_back(
        {std::to_string(world.devices), std::to_string(c.tensor), std::to_string(c.pipeline),
         std::to_string(c.context), std::to_string(c.data), std::to_string(c.chunks),
         std::to_string(c.micro_batch), std::to_string(c.global_batch), yes_no(c.sequence),
         std::to_string(static_cast<int>(c.sharding)), recompute_text(c), seconds_text(world.step.seconds),
         seconds_text(world.step.work), seconds_text(world.step.tensor), seconds_text(world.step.pipeline),
         seconds_text(world.step.rest()), seconds_text(world.plan->time.total()),
         format_count(static_cast<int64_t>(speed.tokens)), format_fixed(100 * speed.utilisation, 1)});
  }
  return fitted(concat("One step of this version's trainer, simulated on ", p.machine.device.name,
                       "; its parts are those of the stage that works longest\n",
                       table_text({.rows = table}, columns), lacking),
                columns);
}

std::string simulation_json(const PlanProblem& p, const std::vector<SimulatedWorld>& worlds) {
  Json steps = Json::array(), root = Json::object();
  for (const SimulatedWorld& world : worlds) {
    Json entry = Json::object();
    entry.set("devices", world.devices);
    if (world.plan) {
      const SimulatedSpeed speed(p, world);
      entry.set("step_seconds", figure(world.step.seconds));
      entry.set("ops_seconds", figure(world.step.work));
      entry.set("tensor_seconds", figure(world.step.tensor));
      entry.set("pipeline_seconds", figure(world.step.pipeline));
      entry.set("tokens_per_second", figure(speed.tokens));
      entry.set("mfu", figure(speed.utilisation));
      entry.set("plan", plan_object(with_devices(p, world.devices), *world.plan));
    } else {
      entry.set("lacking", world.lacking);
    }
    steps.push_back(std::move(entry));
  }
  root.set("simulated", std::move(steps));
  return root.dump() + '\n';
}

std::string recompute_text(const Candidate& c) {
  switch (c.recompute) {
    case Recomputed::kNone:
      return "none";
    case Recomputed::kAttention:
      return "attention";
    case Recomputed::kNormAct:
      return "norm,act";
    case Recomputed::kProducts:
      return "products";
    case Recomputed::kFull:
      return c.recompute_layers > 0 ? concat(c.recompute_layers, " layers") : "full";
  }
  return {};
}

TrillionTokens trillion_tokens(const PlanProblem& p, const Plan& plan, double gpu_hour) {
  const double hours = 1e12 / plan.tokens_per_second(p) / 3600;
  return {.days = hours / 24,
          .megawatt_hours = hours * p.machine.device.watts * p.machine.world / 1e6,
          .cost = hours * p.machine.world * gpu_hour};
}

std::string active_text(const ModelShape& m) {
  return m.has_experts() ? concat(" (", format_fixed(active_parameters(m) / 1e9, 3), " of them for a token)")
                         : "";
}

std::string plan_text(const Report& r) {
  const PlanProblem& p = r.problem;
  std::ostringstream out;
  out << format_fixed(total_parameters(p.model) / 1e9, 3) << " billion parameters" << active_text(p.model)
      << " on " << p.machine.world << " x " << p.machine.device.name << " ("
      << gigabytes(p.machine.device.memory) << " GB each, " << joined_text(p.machine) << " joined by links), "
      << precision_text(p) << '\n'
      << r.result.candidates << " legal candidates in " << r.result.families << " cuts: " << r.result.priced
      << " priced";
  if (r.result.fitting) out << ", of which " << *r.result.fitting << " fit";
  if (r.result.priced < r.result.candidates) out << "; the others are proven slower";
  for (const auto& [rule, count] : r.result.rejected) out << "; " << count << " cuts break " << rule;
  out << "\n\n";
  if (r.result.plans.empty())
    tell_failure(out, r);
  else
    tell_best(out, r);
  if (r.inverse) tell_inverse(out, r);
  if (r.goal) out << scaling_text(p, *r.goal, r.scaling);
  if (!r.result.example.empty()) out << "\nrejected, for example\n";
  for (const auto& [rule, reason] : r.result.example) out << "  " << rule << "  " << reason << '\n';
  return fitted(out.str(), r.columns);
}

std::string plan_json(const Report& r) {
  const PlanProblem& p = r.problem;
  Json plans = Json::array(), front = Json::array(), sensitivities = Json::object(), root = Json::object();
  for (size_t i = 0; i < r.result.plans.size(); ++i) {
    Json entry = plan_object(p, r.result.plans[i]);
    entry.set("megatron_only", !r.trainer[i].refusal.empty());
    if (const auto& rank = r.trainer[i].rank)
      entry.set("trainer_bytes", static_cast<int64_t>(rank->estimate.needed()));
    plans.push_back(std::move(entry));
  }
  for (const Plan& plan : r.front) front.push_back(plan_object(p, plan));
  for (const Sensitivity& s : r.sensitivities) {
    Json entry = Json::object();
    entry.set("step_seconds_10_less", figure(s.less));
    entry.set("step_seconds_10_more", figure(s.more));
    entry.set("fastest_plan_10_less", s.winner_less + 1);
    entry.set("fastest_plan_10_more", s.winner_more + 1);
    sensitivities.set(s.what, std::move(entry));
  }
  root.set("parameters", total_parameters(p.model));
  if (p.model.has_experts()) root.set("active_parameters", active_parameters(p.model));
  root.set("device", p.machine.device.name);
  root.set("device_memory_bytes", p.machine.device.memory);
  root.set("devices", p.machine.world);
  root.set("precision", precision_text(p));
  root.set("families", r.result.families);
  root.set("candidates", r.result.candidates);
  root.set("priced", r.result.priced);
  if (r.result.fitting) root.set("fitting", *r.result.fitting);
  root.set("rejected", rejected_object(r.result));
  root.set("sensitivity", std::move(sensitivities));
  if (r.result.closest) root.set("closest", closest_object(r));
  if (r.result.missed) root.set("missed", plan_object(p, *r.result.missed));
  if (r.remedy) root.set("smallest_change", r.remedy->words);
  if (r.inverse) {
    Json inverse = Json::object();
    inverse.set("least_devices", r.inverse->least_devices);
    inverse.set("longest_sequence", r.inverse->longest_sequence);
    inverse.set("most_layers", r.inverse->most_layers);
    root.set("inverse", std::move(inverse));
  }
  if (r.goal) root.set("scaling", scaling_object(r));
  if (!r.front.empty()) root.set("front", std::move(front));
  if (!r.result.plans.empty()) set_best(root, r);
  root.set("plans", std::move(plans));
  return root.dump(2) + '\n';
}

}  // namespace megalith
