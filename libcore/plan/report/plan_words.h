#pragma once

#include <span>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/figures/text_table.h"
#include "libcore/plan/price/memory_estimate.h"
#include "libcore/plan/price/time_model.h"

namespace megalith {

std::string seconds_text(double seconds);  // "12.3 ms", "1.23 s"
std::string yes_no(bool value);            // "yes", "-"

/// "none", "attention", "norm,act", "products", "4 layers", "full".
std::string recompute_text(const Candidate&);
/// The layers of a stage: "6"; where stages differ, of the first, a middle and the last one: "7+8+7".
std::string layers_text(const PlanProblem&, const Candidate&);
/// "bf16", "mxfp8".
const char* precision_text(const PlanProblem&);
/// The parameters of all adapters of the model.
double adapters_of_model(const PlanProblem&);
/// What a run tunes, followed by ", ": "LoRA of rank 8 (19.988 million trained), "; empty: it trains a new
/// model.
std::string tuning_text(const PlanProblem&);
/// The model's options that Megatron-LM has not, for messages; empty if there is none. A line without them
/// would train another model.
std::string megatron_lacks(const PlanProblem&);
/// Whether Megatron-LM's pretrain_gpt.py trains what is planned, so that its lines are written.
bool megatron_trains(const PlanProblem&);
/// "22.068 billion parameters", "0.937 million parameters"; of a model with experts also how many are active:
/// "46.703 billion parameters (12.880 of them for a token)".
std::string parameters_text(const ModelShape&);

/// A row of a table.
template <class... Values>
TextTable::Row row_of(const Values&... values) {
  return {concat(values)...};
}
/// Breaks lines longer than `columns`; a broken command is still valid in a shell. 0: breaks none.
std::string fitted(const std::string& text, size_t columns);

/// A column of the memory table, in bytes of a stage: one part, or a sum of parts.
struct EstimateColumn {
  const char* name;
  double (*value)(const MemoryEstimate&);
};
std::vector<EstimateColumn> estimate_columns(std::span<const MemoryPart>);

/// A column of the time table: one part of a step, in seconds.
struct TimeColumn {
  const char* name;
  double StepTime::*value;
};
std::span<const TimeColumn> time_columns();

}  // namespace megalith
