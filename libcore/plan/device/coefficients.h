#pragma once

#include <span>
#include <string>

namespace megalith {

/// What is not on a data sheet: the numbers of the time and memory model that were fitted to measured runs,
/// each with a unit, physical bounds, and the value and spread that was believed before any fit
/// (tools/plan_fit pulls towards it). The values here are the fit to all of the published runs that
/// docs/planner.md lists.
struct Coefficients {
  // matrix products
  double sustained_clock, clock_power_exponent, gemm_half_depth, wave_weight, misaligned_rate, narrow_rate,
      vector_rate;
  // attention
  double flash1_rate, flash2_rate, fused_rate, flash_backward, old_mma_rate, head_half_depth, torch_passes;
  // memory-bound work and the host
  double memory_rate, host_launch, kernel_gap, compiled_share, checkpoint_launches;
  // communication
  double link_rate, link_latency, network_rate, network_latency, tensor_overlap, data_overlap,
      context_overlap, message_overlap, message_stall, shard_contention, straggler, congestion;
  // experts
  double exchange_rate, flex_rate, exchange_overlap, routing_launches, expert_launches;
  // the rest of a step
  double optimizer_traffic, step_overhead;
  // memory
  double context_bytes, group_bytes, slack, eager_kept, logit_copies, cached_share, workspace_bytes,
      usable_share;
  // interval
  double spread;
};

/// One of them, as documented and as read from a file.
struct CoefficientInfo {
  const char* name;
  const char* unit;
  double Coefficients::*member;
  double low, high;  // physical bounds
  double prior;      // what one would say before any fit
  double width;      // relative spread of that belief
  double fitted;     // to every run
  const char* meaning;
};
std::span<const CoefficientInfo> coefficient_table();

/// The fit to all runs.
const Coefficients& fitted_coefficients();

/// `fitted` with the lines "name value" of a file in place of its own ("#" begins a comment). kData with file
/// and line when a name is unknown, or a value no number within its bounds; kNoInput.
Coefficients read_coefficients(const std::string& path, const Coefficients& fitted);

}  // namespace megalith
