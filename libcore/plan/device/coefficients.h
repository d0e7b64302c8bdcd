#pragma once

#include <span>
#include <string>
#include <string_view>

namespace megalith {

/// Numbers of the time and memory model that no data sheet gives, fitted to measured runs. Each has a unit,
/// physical bounds, and a prior: the value and spread assumed before any fit (tools/plan_fit pulls each
/// number towards its prior). The installed values are the fit to the published runs of dense models that
/// docs/planner.md lists. Those of experts are their priors.
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
  // the interval of expected step times
  double spread, slower_spread, faster_spread, expert_spread;
  // the probability of running out of memory
  double memory_spread;
};

/// The description of one coefficient, for documentation and for reading a file of coefficients.
struct CoefficientInfo {
  const char* name;
  const char* unit;
  double Coefficients::*member;
  double low, high;  // physical bounds
  double prior;      // the value assumed before any fit
  double width;      // relative spread of the prior
  double fitted;     // the value fitted to all runs
  const char* meaning;
};
std::span<const CoefficientInfo> coefficient_table();

/// The coefficients fitted to all runs.
const Coefficients& fitted_coefficients();
/// Whether some of these runs were on the device of this name (docs/gpus.yaml).
bool has_fitted_runs(std::string_view device);

/// Returns `fitted` with some values replaced by those in a file of lines "name value" ("#" begins a
/// comment). kData with file and line when a name is unknown, or a value is not a number within its bounds;
/// kNoInput when the file cannot be read.
Coefficients read_coefficients(const std::string& path, const Coefficients& fitted);

}  // namespace megalith
