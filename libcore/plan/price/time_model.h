#pragma once

#include "libcore/plan/price/stages.h"

namespace megalith {

/// Seconds of one training step, by kind, on the slowest pipeline stage.
struct StepTime {
  double compute = 0;        // forward and backward of all microbatches
  double recompute = 0;      // layers run a second time
  double tensor_comm = 0;    // of tensor and context ranks, exposed
  double expert_comm = 0;    // tokens to their experts and back, exposed
  double pipeline_comm = 0;  // messages between stages, exposed
  double bubble = 0;         // stages that wait while the pipeline fills and drains
  double data_comm = 0;      // gradients and parameters, exposed
  double optimizer = 0;
  double fixed = 0;      // data, logging
  double straggler = 0;  // waiting for the slowest of many devices
  int bottleneck = 0;    // the slowest stage
  double total() const {
    return compute + recompute + (tensor_comm + expert_comm) + pipeline_comm + bubble + data_comm +
           optimizer + fixed + straggler;
  }
};

StepTime step_time(const PlanProblem&, const Candidate&, const LayerPrice&, const Layout&);
StepTime step_time(const PlanProblem&, const Candidate&);

/// No step of the candidate is shorter, whatever is recomputed and however the state is sharded: the same sum
/// without recomputation and data-parallel communication, each term rounded as there.
double least_seconds(const PlanProblem&, const Candidate&, const LayerPrice&, const Layout&);

/// Seconds of one microbatch on a stage: forward and backward, with what is recomputed and exchanged.
double stage_seconds(const Candidate&, const LayerPrice&, const Layout::Kind&);

/// Seconds between which four of five runs are expected.
struct Interval {
  double low = 0, high = 0;
};
Interval interval(const PlanProblem&, double seconds);
/// The step with the tokens at both ends of their imbalance (PlanProblem::imbalance_point).
Interval imbalance_interval(const PlanProblem&, const Candidate&);
/// The interval of a step that takes `seconds`; with experts both ends of the token imbalance are in it.
Interval step_interval(const PlanProblem&, const Candidate&, double seconds);

/// Floating-point operations of one step over all devices: 6 per parameter of a matrix and token (of the
/// experts, those that the router chooses), and causal attention's half.
double model_flops(const PlanProblem&, int64_t global_batch);

/// Share of the devices' dense peak (of 16 bits, or fp32) that a step of `seconds` reaches.
double model_flops_utilisation(const PlanProblem&, const Candidate&, double seconds);

}  // namespace megalith
