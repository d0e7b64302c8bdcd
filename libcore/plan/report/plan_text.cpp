#include "libcore/plan/report/plan_text.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "libcore/base/text.h"
#include "libcore/plan/launch/launch.h"
#include "libcore/plan/launch/launch_options.h"
#include "libcore/plan/price/code_base.h"
#include "libcore/plan/price/traffic.h"
#include "libcore/plan/report/plan_answer.h"
#include "libcore/plan/report/plan_words.h"
#include "libcore/plan/report/scaling_text.h"

namespace megalith {
namespace {

using Row = TextTable::Row;

/// For a model with experts, inserts the columns about experts after the columns that every model has.
void insert_experts(const PlanProblem& p, Row& row, const std::string& expert,
                    const std::string& expert_tensor) {
  constexpr std::ptrdiff_t kAfterData = 5;
  if (p.model.has_experts()) row.insert(row.begin() + kAfterData, {expert, expert_tensor});
}

/// What runs a plan that this version's trainer does not run.
std::string other_program(const PlanProblem& p) {
  if (megatron_trains(p)) return "Megatron only";
  return takes_megatrons_options(p.software) ? "none" : p.software.code_base;
}

std::string ranked_table(const Report& r) {
  const PlanProblem& p = r.problem;
  std::vector<Row> table = {{"#",    "tp",          "pp",        "cp",      "dp",
                             "vp",   "layers",      "micro",     "global",  "seq-par",
                             "zero", "recompute",   "memory GB", "free GB", "fits %",
                             "step", "80 % within", "tokens/s",  "MFU %",   "runs on"}};
  insert_experts(p, table[0], "ep", "etp");
  for (size_t i = 0; i < r.result.plans.size(); ++i) {
    const Plan& plan = r.result.plans[i];
    const Candidate& c = plan.candidate;
    const double used = plan.memory.estimate.needed(), seconds = plan.time.total();
    const Interval range = step_interval(p, c, seconds);
    table.push_back(row_of(i + 1, c.tensor, c.pipeline, c.context, c.data, c.chunks, layers_text(p, c),
                           c.micro_batch, c.global_batch, yes_no(c.sequence), static_cast<int>(c.sharding),
                           recompute_text(c), gigabytes(used), gigabytes(usable_memory(p) - used),
                           format_fixed(100 * fit_probability(p, used), 1), seconds_text(seconds),
                           concat(seconds_text(range.low), " - ", seconds_text(range.high)),
                           format_count(static_cast<int64_t>(plan.tokens_per_second(p))),
                           format_fixed(100 * model_flops_utilisation(p, c, seconds), 1),
                           r.trainer[i].refusal.empty() ? "megalith" : other_program(p)));
    insert_experts(p, table.back(), std::to_string(c.expert), std::to_string(c.expert_tensor));
  }
  return table_text({.rows = table}, r.columns);
}

/// The memory table: a line for each stage that differs from the previous one.
std::string estimate_table(const Report& r, const Candidate& c) {
  const PlanProblem& p = r.problem;
  std::vector<Row> table = {{"stage", "layers"}};
  const std::vector<EstimateColumn> columns = estimate_columns(memory_parts(p));
  for (const EstimateColumn& column : columns) table[0].push_back(column.name);
  std::string alike;
  Row before;
  int stage = 0;
  for (const MemoryEstimate& estimate : stage_estimates(p, c)) {
    Row row = row_of(stage, stage_layers(p, c, stage));
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
  for (const TimeColumn& column : time_columns())
    if (time.*column.value > 0)
      out += (out.empty() ? "" : ", ") + std::string(column.name) + ' ' + seconds_text(time.*column.value);
  return out + '\n';
}

/// How the tokens' distribution over the experts affects a step; nothing for a dense model.
std::string imbalance_line(const PlanProblem& p, const Plan& plan) {
  if (!p.model.has_experts()) return {};
  const TokenImbalance load = p.model.rank_imbalance(plan.candidate.expert);
  const Interval range = imbalance_interval(p, plan.candidate);
  return concat("token imbalance: the fullest rank of experts gets ", format_fixed(load.low, 2), " to ",
                format_fixed(load.high, 2), " of the mean, a step then takes ", seconds_text(range.low),
                " to ", seconds_text(range.high), "; memory is for ", format_fixed(load.high, 2),
                "\nwhat experts cost is a belief: no run of a mixture was fitted, so the interval is wide\n");
}

std::string remedy_line(const Report& r) {
  return "  " + (r.remedy ? "fits with " + r.remedy->words : "no change of one or two options makes it fit") +
         '\n';
}

/// How many gigabytes a plan needs too many: "0.53 GB more than fits with a probability of 95 %".
std::string lacking_text(const PlanProblem& p, const Plan& plan) {
  return gigabytes(plan.memory.estimate.needed() - allowed_memory(p)) + " GB more than " +
         (prediction_decides(p)
              ? "a device has"
              : "fits with a probability of " + format_fixed(100 * p.asked_probability, 1) + " %");
}

void tell_failure(std::ostream& out, const Report& r) {
  if (!r.result.closest) {
    out << "no combination is legal\n";
    return;
  }
  const Plan& plan = *r.result.closest;
  out << "nothing fits; the closest takes " << gigabytes(plan.memory.estimate.needed()) << " GB on stage "
      << plan.memory.stage << ", " << lacking_text(r.problem, plan) << ", with\n  "
      << launch_options(r.problem, plan.candidate) << '\n'
      << remedy_line(r) << estimate_table(r, plan.candidate);
}

void tell_missed(std::ostream& out, const Report& r) {
  if (!r.result.missed) return;
  const Plan& plan = *r.result.missed;
  out << "\nfaster (" << seconds_text(plan.time.total()) << "), but " << lacking_text(r.problem, plan)
      << " on stage " << plan.memory.stage << ": " << launch_options(r.problem, plan.candidate) << '\n';
  out << remedy_line(r);
}

std::string sensitivity_table(const Report& r) {
  std::vector<Row> table = {{"10 % less or more", "step", "step", "fastest plan"}};
  for (const Sensitivity& s : r.sensitivities)
    table.push_back({s.what, seconds_text(s.less), seconds_text(s.more),
                     concat(s.winner_less + 1, ", ", s.winner_more + 1)});
  return table_text({.rows = table}, r.columns);
}

/// Figures of a plan for training on a trillion tokens.
struct TrillionTokens {
  double hours, days, megawatt_hours, cost;
  TrillionTokens(const PlanProblem& p, const Plan& plan, double gpu_hour)
      : hours(1e12 / plan.tokens_per_second(p) / 3600),
        days(hours / 24),
        megawatt_hours(hours * p.machine.device.watts * p.machine.world / 1e6),
        cost(hours * p.machine.world * gpu_hour) {}
};

std::string front_table(const Report& r) {
  std::vector<Row> table = {{"step", "free GB", "MWh for 1e12 tokens", "days", "cost", "options"}};
  for (const Plan& plan : r.front) {
    const TrillionTokens t(r.problem, plan, r.gpu_hour);
    table.push_back({seconds_text(plan.time.total()),
                     gigabytes(usable_memory(r.problem) - plan.memory.estimate.needed()),
                     format_fixed(t.megawatt_hours, 0), format_fixed(t.days, 1),
                     r.gpu_hour > 0 ? format_count(static_cast<int64_t>(t.cost)) : "-",
                     launch_options(r.problem, plan.candidate)});
  }
  return table_text({.rows = table}, r.columns);
}

/// The lines that start plan 1, those of our program first. Where it runs on this machine's processor, no
/// other does.
void tell_launch_lines(std::ostream& out, const Report& r) {
  const PlanProblem& p = r.problem;
  const bool runs = r.trainer.front().refusal.empty();
  const bool megatron = megatron_trains(p) && !(runs && p.trained_here);
  for (const bool ours : {true, false})
    if (ours ? runs : megatron)
      for (const auto& [name, launcher] : enum_names(Launcher{}))
        out << "  " << launch_line(p, r.result.plans.front().candidate, launcher, ours) << '\n';
}

/// What the ranks exchange in a step of plan 1, if our trainer runs it.
void tell_traffic(std::ostream& out, const Report& r) {
  if (!counts_traffic(r)) return;
  std::vector<Row> table = {{"group", "calls", "bytes"}};
  for (const GroupTraffic& one : step_traffic(r.problem, r.result.plans.front().candidate))
    table.push_back(row_of(one.group, one.calls, format_bytes(static_cast<double>(one.bytes))));
  if (table.size() == 1) return;
  out << "\nwhat one rank of each pipeline stage gives to its groups in a step of plan 1\n"
      << table_text({.rows = table}, r.columns);
}

void tell_details(std::ostream& out, const Report& r) {
  const PlanProblem& p = r.problem;
  const Plan& best = r.result.plans.front();
  out << "\nmemory of plan 1 by pipeline stage, GB\n"
      << estimate_table(r, best.candidate) << "\ntime of a step of plan 1: " << time_line(best.time)
      << imbalance_line(p, best);
  tell_traffic(out, r);
  out << '\n' << sensitivity_table(r) << "\nall lines that start plan 1\n";
  tell_launch_lines(out, r);
  tell_missed(out, r);
  if (!r.front.empty()) out << "\nfastest plans for less and less memory\n" << front_table(r);
}

void tell_inverse(std::ostream& out, const Report& r) {
  const Inverse& i = *r.inverse;
  const auto or_none = [](int found) { return found > 0 ? std::to_string(found) : "none"; };
  out << "\nfewest devices (doubled) " << or_none(i.least_devices) << "; longest sequence (doubled) "
      << or_none(i.longest_sequence) << "; most layers of this width (doubled) " << or_none(i.most_layers)
      << '\n';
}

/// How many layouts the search looked at, and why it left the others out.
void tell_search(std::ostream& out, const SearchResult& found) {
  out << found.candidates << " legal candidates in " << found.families
      << " parallel layouts: " << found.priced << " priced";
  if (found.fitting) out << ", of which " << *found.fitting << " fit";
  if (found.priced < found.candidates) out << "; the others are proven slower";
  for (const auto& [rule, count] : found.rejected) out << "; " << count << " layouts break " << rule;
  out << '\n';
}

void tell_rejected(std::ostream& out, const SearchResult& found) {
  if (!found.example.empty()) out << "\nrejected, for example\n";
  for (const auto& [rule, reason] : found.example) out << "  " << rule << "  " << reason << '\n';
}

}  // namespace

std::string plan_text(const Report& r, PlanDetail detail) {
  const bool found = !r.result.plans.empty(), all = detail == PlanDetail::kAll;
  std::ostringstream out;
  out << plan_subject(r);
  if (all || !found) tell_search(out, r.result);
  out << '\n';
  if (found)
    out << plan_answer(r);
  else
    tell_failure(out, r);
  if (found && detail != PlanDetail::kAnswer)
    out << '\n' << ranked_table(r) << "MFU counts half of causal attention, and nothing that is recomputed\n";
  if (found && all) tell_details(out, r);
  if (r.inverse) tell_inverse(out, r);
  if (r.goal) out << scaling_text(r.problem, *r.goal, r.scaling);
  if (all || !found) tell_rejected(out, r.result);
  if (found && !all) out << "\n--explain prints the other plans, and what memory and time consist of\n";
  return fitted(out.str(), r.columns);
}

}  // namespace megalith
