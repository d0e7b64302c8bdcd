#include "libcore/plan/plan_text.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "libcore/base/text.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

using Row = std::vector<std::string>;

std::string gigabytes(double bytes) {
  return format_fixed(bytes / 1e9, 2);
}

/// Columns as wide as their widest cell, numbers to the right.
std::string aligned(const std::vector<Row>& rows) {
  std::vector<size_t> width;
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (i == width.size()) width.push_back(0);
      width[i] = std::max(width[i], row[i].size());
    }
  std::string out;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      out += (i ? "  " : "") + std::string(width[i] - row[i].size(), ' ') + row[i];
    out += '\n';
  }
  return out;
}

std::string yes_no(bool value) {
  return value ? "yes" : "-";
}

std::string seconds_text(double seconds) {
  return seconds < 1 ? format_fixed(seconds * 1e3, 1) + " ms" : format_fixed(seconds, 2) + " s";
}

std::string ranked_table(const PlanProblem& p, const SearchResult& r, int rows) {
  std::vector<Row> table = {{"#", "tp", "pp", "cp", "dp", "vp", "micro", "global", "seq-par", "zero-1",
                             "recompute", "memory GB", "free GB", "step", "tokens/s", "MFU %"}};
  for (size_t i = 0; i < r.plans.size() && i < static_cast<size_t>(rows); ++i) {
    const Plan& plan = r.plans[i];
    const Candidate& c = plan.candidate;
    const double used = plan.memory.bill.device();
    table.push_back({std::to_string(i + 1), std::to_string(c.tensor), std::to_string(c.pipeline),
                     std::to_string(c.context), std::to_string(c.data), std::to_string(c.chunks),
                     std::to_string(c.micro_batch), std::to_string(c.global_batch), yes_no(c.sequence),
                     yes_no(c.distributed_optimizer), c.recompute == Recompute::kFull ? "full" : "-",
                     gigabytes(used), gigabytes(p.machine.device.memory - used),
                     seconds_text(plan.time.total()),
                     format_count(static_cast<int64_t>(plan.tokens_per_second(p))),
                     format_fixed(100 * model_flops_utilisation(p, c, plan.time.total()), 1)});
  }
  return aligned(table);
}

struct BillColumn {
  const char* name;
  double (*value)(const MemoryBill&);
};
constexpr BillColumn kBill[] = {
    {"parameters", [](const MemoryBill& b) { return b.parameters; }},
    {"gradients", [](const MemoryBill& b) { return b.gradients; }},
    {"optimizer", [](const MemoryBill& b) { return b.optimizer; }},
    {"activations", [](const MemoryBill& b) { return b.activations; }},
    {"logits", [](const MemoryBill& b) { return b.logits; }},
    {"transient", [](const MemoryBill& b) { return b.transient; }},
    {"context", [](const MemoryBill& b) { return b.context; }},
    {"fragmentation", [](const MemoryBill& b) { return b.fragmentation; }},
    {"allocated", [](const MemoryBill& b) { return b.allocated(); }},
    {"reserved", [](const MemoryBill& b) { return b.reserved(); }},
    {"device", [](const MemoryBill& b) { return b.device(); }},
};

struct TimeColumn {
  const char* name;
  double StepTime::*value;
};
constexpr TimeColumn kTime[] = {
    {"compute", &StepTime::compute},         {"recompute", &StepTime::recompute},
    {"tensor comm", &StepTime::tensor_comm}, {"pipeline comm", &StepTime::pipeline_comm},
    {"bubble", &StepTime::bubble},           {"data comm", &StepTime::data_comm},
    {"optimizer", &StepTime::optimizer},     {"fixed", &StepTime::fixed}};

std::string bill_table(const PlanProblem& p, const Candidate& c) {
  std::vector<Row> table = {{"stage"}};
  for (const BillColumn& column : kBill) table[0].push_back(column.name);
  for (int stage = 0; stage < c.pipeline; ++stage) {
    if (c.pipeline > 4 && stage > 1 && stage < c.pipeline - 1) continue;  // the middle is alike
    const MemoryBill bill = memory_bill(p, c, stage);
    Row row = {std::to_string(stage)};
    for (const BillColumn& column : kBill) row.push_back(gigabytes(column.value(bill)));
    table.push_back(row);
  }
  return aligned(table);
}

std::string time_line(const StepTime& time) {
  std::string out;
  for (const TimeColumn& column : kTime)
    if (time.*column.value > 0)
      out += (out.empty() ? "" : ", ") + std::string(column.name) + ' ' + seconds_text(time.*column.value);
  return out + '\n';
}

void tell_failure(std::ostream& out, const PlanProblem& p, const SearchResult& r) {
  if (!r.closest) {
    out << "no combination is legal\n";
    return;
  }
  const Plan& plan = *r.closest;
  const double lacking = plan.memory.bill.device() - p.machine.device.memory;
  out << "nothing fits; the least is " << gigabytes(plan.memory.bill.device()) << " GB on stage "
      << plan.memory.stage << ", " << gigabytes(lacking) << " GB more than a device has, with\n  "
      << launch_options(p, plan.candidate) << '\n'
      << bill_table(p, plan.candidate);
}

}  // namespace

std::string launch_options(const PlanProblem& p, const Candidate& c) {
  std::ostringstream out;
  out << "--tensor-model-parallel-size " << c.tensor << " --pipeline-model-parallel-size " << c.pipeline;
  if (c.context > 1) out << " --context-parallel-size " << c.context;
  if (c.chunks > 1)
    out << " --num-layers-per-virtual-pipeline-stage " << p.model.layers / c.pipeline / c.chunks;
  out << " --micro-batch-size " << c.micro_batch << " --global-batch-size " << c.global_batch;
  if (c.sequence) out << " --sequence-parallel";
  if (c.distributed_optimizer) out << " --use-distributed-optimizer";
  if (c.recompute == Recompute::kFull)
    out << " --recompute-granularity full --recompute-method uniform --recompute-num-layers 1";
  return out.str();
}

std::string plan_text(const PlanProblem& p, const SearchResult& r, int rows) {
  std::ostringstream out;
  out << format_fixed(total_parameters(p.model) / 1e9, 3) << " billion parameters on " << p.machine.world
      << " x " << p.machine.device.name << " (" << gigabytes(p.machine.device.memory) << " GB each), "
      << (p.half ? "bf16" : "fp32") << '\n'
      << r.considered << " combinations: " << r.plans.size() << " fit, " << r.too_large
      << " need more memory";
  for (const auto& [rule, count] : r.rejected) out << ", " << count << " break " << rule;
  out << "\n\n";
  if (r.plans.empty()) {
    tell_failure(out, p, r);
  } else {
    const Plan& best = r.plans.front();
    out << ranked_table(p, r, rows) << "\nmemory of plan 1 by pipeline stage, GB\n"
        << bill_table(p, best.candidate) << "\ntime of a step of plan 1: " << time_line(best.time)
        << "\noptions of plan 1\n  " << launch_options(p, best.candidate) << '\n';
  }
  if (!r.example.empty()) out << "\nrejected, for example\n";
  for (const auto& [rule, reason] : r.example) out << "  " << rule << "  " << reason << '\n';
  return out.str();
}

std::string plan_json(const PlanProblem& p, const SearchResult& r, int rows) {
  Json plans = Json::array();
  for (size_t i = 0; i < r.plans.size() && i < static_cast<size_t>(rows); ++i) {
    const Plan& plan = r.plans[i];
    const Candidate& c = plan.candidate;
    Json memory = Json::object(), time = Json::object(), entry = Json::object();
    for (const BillColumn& column : kBill) memory.set(column.name, column.value(plan.memory.bill));
    for (const TimeColumn& column : kTime) time.set(column.name, plan.time.*column.value);
    entry.set("tensor", c.tensor);
    entry.set("pipeline", c.pipeline);
    entry.set("context", c.context);
    entry.set("data", c.data);
    entry.set("chunks", c.chunks);
    entry.set("micro_batch", c.micro_batch);
    entry.set("global_batch", c.global_batch);
    entry.set("sequence_parallel", c.sequence);
    entry.set("distributed_optimizer", c.distributed_optimizer);
    entry.set("recompute", c.recompute == Recompute::kFull ? "full" : "none");
    entry.set("memory_stage", plan.memory.stage);
    entry.set("memory_bytes", std::move(memory));
    entry.set("step_seconds", plan.time.total());
    entry.set("time_seconds", std::move(time));
    entry.set("tokens_per_second", plan.tokens_per_second(p));
    entry.set("mfu", model_flops_utilisation(p, c, plan.time.total()));
    entry.set("options", launch_options(p, c));
    plans.push_back(std::move(entry));
  }
  Json rejected = Json::object();
  for (const auto& [rule, count] : r.rejected) rejected.set(rule, count);
  Json root = Json::object();
  root.set("parameters", total_parameters(p.model));
  root.set("device", p.machine.device.name);
  root.set("device_memory_bytes", p.machine.device.memory);
  root.set("devices", p.machine.world);
  root.set("considered", r.considered);
  root.set("too_large", r.too_large);
  root.set("rejected", std::move(rejected));
  root.set("plans", std::move(plans));
  return root.dump(2) + '\n';
}

}  // namespace megalith
