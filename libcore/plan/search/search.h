#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libcore/plan/price/memory_estimate.h"
#include "libcore/plan/price/time_model.h"

namespace megalith {

/// Values that the user fixed; an empty one is searched.
struct Fixed {
  std::optional<int> tensor = {}, pipeline = {}, context = {}, data = {}, chunks = {}, micro_batch = {};
  std::optional<int> expert = {}, expert_tensor = {};
  std::optional<int> first_layers = {}, last_layers = {};
  bool counts_embedding = false, counts_head = false;  // see Candidate
  std::optional<int> recompute_layers = {};            // of each chunk, as Megatron counts (R1)
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
  std::vector<Plan>
      plans;  // the best that fit, fastest first (tokens per second; ties: less memory, then sizes)
  std::optional<Plan> closest;  // when none fits: the one that lacks the least memory
  std::optional<Plan> missed;   // of the faster ones that do not fit: the one that lacks the least
  int64_t families =
      0;  // partitions (tensor, pipeline, context, experts, micro-batch, chunks, sequence) examined
  int64_t candidates = 0;                      // legal choices of recomputation and sharding in them
  int64_t priced = 0;                          // candidates priced; the others were proven worse
  std::optional<int64_t> fitting = {};         // priced ones that fit, if memory was computed for all
  std::map<std::string, int64_t> rejected;     // families by rule id
  std::map<std::string, std::string> example;  // one reason by rule id
};

/// The search space: tensor and context sizes that are powers of two or divide the world and the heads, up to
/// 32; every pipeline size that divides the rest and the layers, and those whose uneven partition leaves the
/// stages idle for at most an eighth of the time; micro-batches 1, 2, 4 … 32; every interleaving that the
/// rules allow; sequence parallelism; no recomputation, attention's, and whole layers from 1 to all of a
/// stage; ZeRO 0 to 3. For a model with experts every number of expert ranks that divides the experts, and
/// each expert's matrices over any number of ranks that divides the tensor size.
enum class SearchMode {
  kBounded,     // leaves out candidates that a lower bound of time or memory proves worse than `top` plans
  kExhaustive,  // prices every candidate
};

/// The `top` best plans: the same in both modes, bit for bit. Deterministic.
SearchResult search_plans(const PlanProblem&, const Fixed&, size_t top = 20,
                          SearchMode = SearchMode::kBounded);

/// search_plans(). If no plan fits together with the copy for an asynchronous save, and the problem does not
/// require that copy, searches again without it: saves then wait for the disk, as in a run
/// (chosen_save_copy). Sets problem.save_copy to kNone in that case.
SearchResult search_beside_saves(PlanProblem& problem, const Fixed&, size_t top,
                                 SearchMode = SearchMode::kBounded);

/// A candidate with its price: its memory is fullest_stage()'s.
Plan make_plan(const PlanProblem&, const Candidate&);

}  // namespace megalith
