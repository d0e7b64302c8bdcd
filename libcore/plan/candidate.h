#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libcore/config/model_config.h"
#include "libcore/config/train_config.h"
#include "libcore/plan/machine.h"

namespace megalith {

/// One way to share the work. data, microbatches and global_batch follow from the rest (complete()).
struct Candidate {
  int tensor = 1, pipeline = 1, context = 1, data = 1;
  int chunks = 1;       // model chunks of a pipeline rank; 1: not interleaved
  int micro_batch = 1;  // samples
  bool sequence = false;
  bool distributed_optimizer = false;
  Recompute recompute = Recompute::kNone;
  int64_t microbatches = 1;
  int64_t global_batch = 1;
};

/// What is to be planned. Bytes per element follow from the precision.
struct PlanProblem {
  ModelConfig model;  // finish()ed, vocab_size known
  Machine machine;
  bool half = true;              // bf16 with fp32 gradients and masters; false: fp32 throughout
  int64_t global_batch = 0;      // 0: not fixed
  int64_t max_global_batch = 0;  // 0: no bound
};

/// Why a candidate is not legal: the rule's id as in docs/planner.md, and what is wrong with which numbers.
struct Rejection {
  const char* rule;
  std::string reason;
};

/// Fills data, microbatches and global_batch and checks every rule. Nothing when the candidate is legal.
std::optional<Rejection> complete(const PlanProblem&, Candidate&);

}  // namespace megalith
