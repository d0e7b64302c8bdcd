#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/plan/candidate.h"

namespace megalith {

/// Numbers of parameters, of the whole model or of what one tensor rank holds.
struct ParameterCount {
  double block = 0;      // one transformer layer
  double embedding = 0;  // word and position embeddings
  double head = 0;       // LM head of its own, and final norm
  double head_copy = 0;  // the last stage's copy of tied word embeddings when the first stage is elsewhere
};
ParameterCount count_parameters(const ModelConfig&, int tensor);
/// Parameters of the model, tied ones once.
double total_parameters(const ModelConfig&);

/// Bytes on one device of a pipeline stage, by kind.
struct MemoryBill {
  double parameters = 0, gradients = 0, optimizer = 0;
  double activations = 0;    // of all microbatches in flight
  double logits = 0;         // last stage
  double transient = 0;      // gathered inputs, pipeline messages, workspace
  double context = 0;        // driver, kernels and communication buffers
  double fragmentation = 0;  // what a caching allocator reserves but cannot use

  double allocated() const { return parameters + gradients + optimizer + activations + logits + transient; }
  double reserved() const { return allocated() + fragmentation; }
  double device() const { return reserved() + context; }  // what nvidia-smi shows
};

/// Bytes that one layer keeps for its backward pass, of one microbatch, on one device: counted tensor by
/// tensor; for 16-bit GELU with dropout it is Korthikanti et al. 2022 (arXiv 2205.05198), table 2.
double block_activations(const PlanProblem&, const Candidate&);

/// The bill of pipeline stage `stage` (0 .. pipeline - 1).
MemoryBill memory_bill(const PlanProblem&, const Candidate&, int stage);

/// The stage whose device() is greatest, and its bill.
struct WorstStage {
  int stage = 0;
  MemoryBill bill;
};
WorstStage worst_stage(const PlanProblem&, const Candidate&);

}  // namespace megalith
