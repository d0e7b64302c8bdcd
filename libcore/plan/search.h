#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libcore/plan/memory_bill.h"
#include "libcore/plan/time_model.h"

namespace megalith {

/// Values that the user fixed; an empty one is searched.
struct Fixed {
  std::optional<int> tensor = {}, pipeline = {}, context = {}, chunks = {}, micro_batch = {};
  std::optional<bool> sequence = {}, distributed_optimizer = {};
  std::optional<Recompute> recompute = {};
};

/// A legal candidate with its price.
struct Plan {
  Candidate candidate;
  WorstStage memory;
  StepTime time;
  double tokens_per_second(const PlanProblem& p) const {
    return static_cast<double>(candidate.global_batch) * p.model.seq_length / time.total();
  }
};

struct SearchResult {
  std::vector<Plan> plans;      // that fit, fastest first (tokens per second; ties: less memory)
  std::optional<Plan> closest;  // when none fits: the one that lacks least memory
  int64_t considered = 0, too_large = 0;
  std::map<std::string, int64_t> rejected;     // by rule id
  std::map<std::string, std::string> example;  // a reason by rule id
};

/// Prices every combination of the sizes that divide the world, micro-batches that are powers of two up to
/// 64, interleaving, sequence parallelism, distributed optimizer and recomputation. Deterministic.
SearchResult search_plans(const PlanProblem&, const Fixed&);

}  // namespace megalith
