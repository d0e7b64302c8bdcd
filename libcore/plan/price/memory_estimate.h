#pragma once

#include <string>
#include <vector>

#include "libcore/plan/price/stages.h"

namespace megalith {

/// Bytes on one device of a pipeline stage, by kind.
struct MemoryEstimate {
  double parameters = 0, gradients = 0, optimizer = 0;
  double activations = 0;    // activations of all microbatches in flight
  double logits = 0;         // of the last stage
  double transient = 0;      // gathered inputs and parameters, pipeline messages, workspace
  double save_copy = 0;      // the copy for an asynchronous save (PlanProblem::save_copy)
  double context = 0;        // driver, kernels, communication buffers and CUDA graphs
  double fragmentation = 0;  // what a caching allocator reserves but cannot use

  double cached = 0;  // memory that the allocator keeps from another phase of the step, and returns before
                      // memory runs out

  double allocated() const {
    return parameters + gradients + optimizer + activations + logits + transient + save_copy;
  }
  double reserved() const { return allocated() + fragmentation + cached; }
  double device() const { return reserved() + context; }  // what nvidia-smi shows, if this much fits
  double needed() const { return allocated() + fragmentation + context; }  // with less memory the run fails
};

/// A part of a device's memory in reports. The parts add up to needed().
struct MemoryPart {
  const char* name;
  const char* color;  // in HTML
  double (*value)(const MemoryEstimate&);
  bool of_saves = false;  // whether the part is left out if saves copy nothing
};
inline constexpr MemoryPart kMemoryParts[] = {
    {"parameters", "#4269d0", [](const MemoryEstimate& b) { return b.parameters; }},
    {"gradients", "#6cc5b0", [](const MemoryEstimate& b) { return b.gradients; }},
    {"optimizer", "#3ca951", [](const MemoryEstimate& b) { return b.optimizer; }},
    {"activations", "#efb118", [](const MemoryEstimate& b) { return b.activations; }},
    {"logits", "#ff725c", [](const MemoryEstimate& b) { return b.logits; }},
    {"transient", "#a463f2", [](const MemoryEstimate& b) { return b.transient; }},
    {"save copy", "#97bbf5", [](const MemoryEstimate& b) { return b.save_copy; }, true},
    {"context", "#9498a0", [](const MemoryEstimate& b) { return b.context; }},
    {"fragmentation", "#d0d3d8", [](const MemoryEstimate& b) { return b.fragmentation; }},
};
/// The parts that apply to the problem.
std::vector<MemoryPart> memory_parts(const PlanProblem&);

/// The bytes of a device that a job can use before memory runs out.
double usable_memory(const PlanProblem&);
/// The probability that a run does not run out of memory if it is predicted to need this many bytes. The
/// logarithm of what runs need is normally distributed about the prediction's, with standard deviation
/// Coefficients::memory_spread; what our trainer counts itself (trained_here) is certain.
double fit_probability(const PlanProblem&, double needed);
/// Whether a plan fits exactly if it is predicted to need no more than usable_memory(): if the problem asks
/// for no more than an even chance, or if our trainer counts the memory itself.
bool prediction_decides(const PlanProblem&);
/// The most bytes that a plan may need so that it fits with the probability that the problem asks.
double allowed_memory(const PlanProblem&);
std::string gigabytes(double bytes);  // "12.34"

/// Bytes that one layer keeps for its backward pass, for one microbatch, on one device.
double block_activations(const PlanProblem&, const Candidate&);

/// Parameters on one device of a pipeline stage.
struct StageParameters {
  double shared = 0;   // parameters that all data and context ranks hold
  double experts = 0;  // parameters that expert_data() ranks hold
  double sum() const { return shared + experts; }
};
StageParameters stage_parameters(const Candidate&, const ParameterCount&, const Layout::Kind&);

/// The estimate of a pipeline stage (0 .. pipeline - 1).
MemoryEstimate memory_estimate(const PlanProblem&, const Candidate&, const LayerPrice&, const Layout::Kind&);
MemoryEstimate memory_estimate(const PlanProblem&, const Candidate&, int stage);

/// The stage with the largest needed(), and its estimate.
struct WorstStage {
  int stage = 0;
  MemoryEstimate estimate;
};
WorstStage worst_stage(const PlanProblem&, const Candidate&, const LayerPrice&, const Layout&);
WorstStage worst_stage(const PlanProblem&, const Candidate&);

}  // namespace megalith
