#include "libcore/plan/report/plan_words.h"

#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/plan/price/code_base.h"

namespace megalith {
namespace {

constexpr EstimateColumn kSums[] = {
    {"cached", [](const MemoryEstimate& b) { return b.cached; }},
    {"allocated", [](const MemoryEstimate& b) { return b.allocated(); }},
    {"reserved", [](const MemoryEstimate& b) { return b.reserved(); }},
    {"device", [](const MemoryEstimate& b) { return b.device(); }},
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

}  // namespace

std::string seconds_text(double seconds) {
  return seconds < 1 ? format_fixed(seconds * 1e3, 1) + " ms" : format_fixed(seconds, 2) + " s";
}

std::string yes_no(bool value) {
  return value ? "yes" : "-";
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

std::string layers_text(const PlanProblem& p, const Candidate& c) {
  if (c.pipeline == 1) return std::to_string(p.model.layers);
  const int first = stage_layers(p, c, 0), middle = stage_layers(p, c, c.pipeline / 2),
            last = stage_layers(p, c, c.pipeline - 1);
  if (first == middle && last == middle) return std::to_string(first);
  return c.pipeline == 2 ? concat(first, '+', last) : concat(first, '+', middle, '+', last);
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

std::string parameters_text(const ModelShape& m) {
  constexpr double kBillion = 1e9, kMillion = 1e6;
  const double all = total_parameters(m);
  const bool large = all >= kBillion;
  const auto number = [&](double count) { return format_fixed(count / (large ? kBillion : kMillion), 3); };
  return concat(number(all), large ? " billion" : " million", " parameters",
                m.has_experts() ? concat(" (", number(active_parameters(m)), " of them for a token)") : "");
}

double adapters_of_model(const PlanProblem& p) {
  return adapter_parameters(p.model, 1, p.tuning.lora_rank) * p.model.layers;
}

std::string tuning_text(const PlanProblem& p) {
  const PlannedTuning& t = p.tuning;
  if (!t.finetunes) return {};
  if (!t.adapts()) return "tuned as a whole, ";
  constexpr double kMillion = 1e6;
  return concat("LoRA of rank ", t.lora_rank, " (", format_fixed(adapters_of_model(p) / kMillion, 3),
                " million trained)", t.eight_bits ? " over layers of 8 bits" : "", ", ");
}

std::string megatron_lacks(const PlanProblem& p) {
  const ModelShape& m = p.model;
  std::vector<std::string> options = m.multipliers();
  if (m.parallel_residual) options.emplace_back("--parallel-residual");
  if (m.norms_after()) options.push_back(concat("--norm-placement ", enum_name(m.norm_placement)));
  if (m.qk_norm_all_heads) options.emplace_back("--qk-norm-all-heads");
  if (m.rope_type != RopeType::kDefault)
    options.push_back(concat("--rope-scaling-type ", enum_name(m.rope_type)));
  return join(options, ", ");
}

bool megatron_trains(const PlanProblem& p) {
  return takes_megatrons_options(p.software) && !p.tuning.finetunes && megatron_lacks(p).empty();
}

std::string fitted(const std::string& text, size_t columns) {
  if (columns == 0) return text;
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n')) {
    const bool command = line.starts_with("  ") && line.find(" --") != std::string::npos;
    lines.push_back(wrapped(line, columns, "    ", command ? " \\" : ""));
  }
  return join(lines, "\n");
}

std::vector<EstimateColumn> estimate_columns(std::span<const MemoryPart> parts) {
  std::vector<EstimateColumn> columns;
  for (const MemoryPart& part : parts) columns.push_back({part.name, part.value});
  columns.insert(columns.end(), std::begin(kSums), std::end(kSums));
  return columns;
}

std::span<const TimeColumn> time_columns() {
  return kTime;
}

}  // namespace megalith
