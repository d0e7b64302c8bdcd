#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libcore/plan/price/memory_estimate.h"
#include "libcore/plan/price/time_model.h"

namespace megalith {

/// The choices that the user fixed. The search tries all values of those that are empty.
struct Fixed {
  std::optional<int> tensor = {}, pipeline = {}, context = {}, data = {}, chunks = {}, micro_batch = {};
  std::optional<int> expert = {}, expert_tensor = {};
  std::optional<int> first_layers = {}, last_layers = {};
  bool counts_embedding = false, counts_head = false;  // see Candidate
  std::optional<int> recompute_layers = {};            // layers of each chunk, as Megatron counts them (R1)
  std::optional<bool> sequence = {};
  std::optional<Sharding> sharding = {};
  std::optional<Recomputed> recompute = {};
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
  /// The best plans that fit, fastest first (tokens per second; ties: less memory, then sizes).
  std::vector<Plan> plans;
  std::optional<Plan> closest;  // if no plan fits: the plan that exceeds the memory by least
  std::optional<Plan> missed;   // of the plans that are faster than all of `plans` but do not fit: the one
                                // that exceeds the memory by least
  /// The number of partitions examined (tensor, pipeline, context, experts, micro-batch, chunks, sequence).
  int64_t families = 0;
  int64_t candidates = 0;  // legal choices of recomputation and sharding in them
  int64_t priced = 0;      // candidates priced; the others were proven worse
  /// Priced candidates that fit; unset if memory was not computed for all of them.
  std::optional<int64_t> fitting = {};
  std::map<std::string, int64_t> rejected;     // number of illegal partitions, by the id of the broken rule
  std::map<std::string, std::string> example;  // one reason for each of these ids
};

/// The candidates that a search covers:
/// - tensor and context sizes up to 32 that are powers of two, or that divide the world and the heads;
/// - pipeline sizes that divide the rest of the world and the layers, and those whose uneven partition leaves
/// the stages idle for at most an eighth of the time;
/// - micro-batches of 1, 2, 4 … 32; every interleaving that the rules allow; with and without sequence
/// parallelism;
/// - no recomputation, that of attention, and that of whole layers, from 1 to all layers of a stage (128
/// numbers of these at most, and fewer of a model of more than 256 layers); ZeRO 0 to 3;
/// - for a model with experts, every number of expert ranks that divides the experts, and every number of
/// ranks for each expert's matrices that divides the tensor size.
enum class SearchMode {
  kBounded,     // leaves out candidates that a lower bound of time or memory proves worse than `top` plans
  kExhaustive,  // prices every candidate
};

/// The `top` best plans. Deterministic: both modes give the same plans, bit for bit.
SearchResult search_plans(const PlanProblem&, const Fixed&, size_t top = 20,
                          SearchMode = SearchMode::kBounded);

/// As search_plans(). If no plan fits together with the copy for an asynchronous save, and the problem does
/// not require that copy, sets problem.save_copy to kNone and searches again: saves then wait for the disk,
/// as in a run (chosen_save_copy).
SearchResult search_beside_saves(PlanProblem& problem, const Fixed&, size_t top,
                                 SearchMode = SearchMode::kBounded);

/// The candidate with its price; Plan::memory is that of fullest_stage().
Plan make_plan(const PlanProblem&, const Candidate&);

}  // namespace megalith
