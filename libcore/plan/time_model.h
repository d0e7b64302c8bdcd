#pragma once

#include "libcore/plan/candidate.h"

namespace megalith {

/// Seconds of one training step, by kind, on the slowest pipeline stage. A first model from data sheets
/// alone: GEMMs at a peak lowered by clock, tile and wave quantisation, attention and element-wise work by
/// their own rates, rings for communication.
struct StepTime {
  double compute = 0;        // forward and backward of all microbatches
  double recompute = 0;      // layers run a second time
  double tensor_comm = 0;    // exposed; all-reduces or their gather/scatter halves
  double pipeline_comm = 0;  // messages between stages
  double bubble = 0;         // stages that wait while the pipeline fills and drains
  double data_comm = 0;      // gradients and, with a distributed optimizer, parameters
  double optimizer = 0;
  double fixed = 0;  // launches, logging
  double total() const {
    return compute + recompute + tensor_comm + pipeline_comm + bubble + data_comm + optimizer + fixed;
  }
};

StepTime step_time(const PlanProblem&, const Candidate&);

/// Floating-point operations of one step over all devices: 6 per parameter of a matrix and token, and causal
/// attention's half.
double model_flops(const PlanProblem&, int64_t global_batch);

/// Share of the devices' dense peak that a step of `seconds` reaches.
double model_flops_utilisation(const PlanProblem&, const Candidate&, double seconds);

}  // namespace megalith
