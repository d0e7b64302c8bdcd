#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libcore/plan/price/candidate.h"

namespace megalith {

/// A run of a table of measured runs: its cells by column. The header of plan_accuracy.cpp names the columns.
using RunRow = std::map<std::string, std::string>;
/// The rows of a file with a header.
std::vector<RunRow> read_run_rows(const std::string& path);

/// The text of a cell; empty if the table has no such column.
const std::string& cell(const RunRow&, const char* column);
double number_in(const RunRow&, const char* column, double otherwise = 0);
int whole_in(const RunRow&, const char* column, int otherwise = 0);

/// Whether the row says enough to be priced.
bool expressible(const RunRow&);
/// The row as a problem. kUsage for a device that docs/gpus.yaml does not have.
PlanProblem problem_of(const RunRow&);
/// The layout that the row describes, whether or not Megatron would accept it.
Candidate candidate_of(const RunRow&, const PlanProblem&);

/// The options of megalith-autoplan that plan the row, every choice fixed; nothing for a row that leaves the
/// micro-batch open, and for interleaved stages of which each has its own number of layers.
std::optional<std::vector<std::string>> command_of(const RunRow&);

}  // namespace megalith
