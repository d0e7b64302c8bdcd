#pragma once

#include "libcore/plan/price/stages.h"

namespace megalith {

/// Seconds of one training step, by kind, on the slowest pipeline stage.
struct StepTime {
  double compute = 0;        // forward and backward of all microbatches
  double recompute = 0;      // layers run a second time
  double tensor_comm = 0;    // exposed communication of tensor and context ranks
  double expert_comm = 0;    // exposed exchange of tokens with their experts
  double pipeline_comm = 0;  // exposed messages between stages
  double bubble = 0;         // waiting while the pipeline fills and drains
  double data_comm = 0;      // exposed exchange of gradients and parameters
  double optimizer = 0;
  double fixed = 0;      // loading data, logging
  double straggler = 0;  // waiting for the slowest of many devices
  int bottleneck = 0;    // index of the slowest stage
  double total() const {
    return compute + recompute + (tensor_comm + expert_comm) + pipeline_comm + bubble + data_comm +
           optimizer + fixed + straggler;
  }
};

StepTime step_time(const PlanProblem&, const Candidate&, const LayerPrice&, const Layout&);
StepTime step_time(const PlanProblem&, const Candidate&);

/// A lower bound of step_time() over all choices of recomputation and sharding: the same sum, but without
/// recomputation and data-parallel communication. Each term is rounded as in step_time().
double least_seconds(const PlanProblem&, const Candidate&, const LayerPrice&, const Layout&);

/// Seconds of one microbatch on a stage: forward and backward, including recomputation and exchange.
double stage_seconds(const Candidate&, const LayerPrice&, const Layout::Kind&);

/// A range of seconds, in which four of five runs are expected.
struct Interval {
  double low = 0, high = 0;
};
/// The interval that holds four of five runs of a step that is predicted to take `seconds`. It is wider for
/// LoRA, for mixtures of experts, and where the coefficients were fitted to no run of this code base or
/// device, unless the machine was measured (PlanProblem::measured).
Interval interval(const PlanProblem&, double seconds);
/// The interval of a code base or a device of which no run was fitted.
Interval unseen_interval(const PlanProblem&, double seconds);
/// Seconds of the step at the lower and the upper end of the token imbalance (PlanProblem::imbalance_point).
Interval imbalance_interval(const PlanProblem&, const Candidate&);
/// The interval of a step that takes `seconds`; with experts it includes both ends of the token imbalance.
Interval step_interval(const PlanProblem&, const Candidate&, double seconds);

/// Floating-point operations of one step over all devices: 6 per token and matrix parameter (counting only
/// the experts that the router chooses), and those of attention, halved by the causal mask.
double model_flops(const PlanProblem&, int64_t global_batch);

/// Share of the devices' dense peak (in 16 bits, or fp32) that a step of `seconds` reaches.
double model_flops_utilisation(const PlanProblem&, const Candidate&, double seconds);

}  // namespace megalith
