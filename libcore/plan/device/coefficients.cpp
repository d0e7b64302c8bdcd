#include "libcore/plan/device/coefficients.h"

#include <algorithm>
#include <iterator>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

using C = Coefficients;

// Each row: name, unit, member, bounds, value assumed before the fit, its relative spread, fitted value
// (written by tools/plan_fit --install), meaning.
constexpr CoefficientInfo kTable[] = {
    {"sustained_clock", "of peak", &C::sustained_clock, 0.6, 1.0, 0.88, 0.06, 0.854432,
     "matrix rate that an A100 holds in large products"},
    {"clock_power_exponent", "1", &C::clock_power_exponent, 0, 0.8, 0.3, 0.4, 0.41431,
     "how that falls with watts for each FLOP/s, relative to an A100"},
    {"gemm_half_depth", "elements", &C::gemm_half_depth, 20, 1000, 250, 0.5, 281.653,
     "inner dimension at which a product reaches half its rate"},
    {"wave_weight", "of time", &C::wave_weight, 0, 1, 0.6, 0.4, 0.479028,
     "part of a product that tile and wave quantisation slow down"},
    {"misaligned_rate", "of rate", &C::misaligned_rate, 0.4, 1, 0.75, 0.15, 0.604869,
     "products with a size that is not a multiple of 64"},
    {"narrow_rate", "of gain", &C::narrow_rate, 0.2, 1, 0.7, 0.2, 0.904335,
     "what 8 and 4 bits reach of their data-sheet gain over 16"},
    {"vector_rate", "of fp32 rate", &C::vector_rate, 0.2, 1, 0.7, 0.2, 0.672646,
     "products for the scores of heads whose size is not a multiple of 8"},
    {"flash1_rate", "of peak", &C::flash1_rate, 0.1, 0.8, 0.4, 0.2, 0.249165,
     "first flash attention, forward"},
    {"flash2_rate", "of peak", &C::flash2_rate, 0.2, 0.95, 0.6, 0.15, 0.554886,
     "second flash attention, forward"},
    {"fused_rate", "of peak", &C::fused_rate, 0.2, 0.98, 0.65, 0.15, 0.566151,
     "cuDNN's and Transformer Engine's attention, forward"},
    {"flash_backward", "of forward", &C::flash_backward, 0.5, 1, 0.8, 0.1, 0.700324,
     "rate of its backward pass"},
    {"old_mma_rate", "of rate", &C::old_mma_rate, 0.3, 1, 0.6, 0.15, 0.593132,
     "flash kernels written for Ampere, on later devices"},
    {"head_half_depth", "channels", &C::head_half_depth, 0, 128, 20, 0.5, 29.119,
     "head size at which attention reaches half its rate"},
    {"torch_passes", "passes", &C::torch_passes, 2, 16, 7, 0.3, 8.15908,
     "more passes over the scores without a fused softmax"},
    {"memory_rate", "of bandwidth", &C::memory_rate, 0.5, 0.98, 0.82, 0.08, 0.801476, "memory-bound kernels"},
    {"host_launch", "s", &C::host_launch, 1e-6, 4e-5, 1.4e-5, 0.4, 1.92325e-05,
     "host's time to start a kernel"},
    {"kernel_gap", "s", &C::kernel_gap, 5e-7, 1e-5, 2.5e-6, 0.4, 2.37058e-06,
     "device's idle time between two kernels"},
    {"compiled_share", "of kernels", &C::compiled_share, 0.3, 1, 0.6, 0.2, 0.6,
     "that a compiled program still starts"},
    {"checkpoint_launches", "kernels", &C::checkpoint_launches, 0, 200, 40, 0.4, 46.1301,
     "host's work for keeping and restoring what a recomputed layer needs, in kernel starts"},
    {"link_rate", "of bandwidth", &C::link_rate, 0.4, 0.95, 0.75, 0.1, 0.720168, "NVLink in rings"},
    {"link_latency", "s", &C::link_latency, 1e-6, 3e-5, 5e-6, 0.4, 5.29939e-06, "a hop over NVLink"},
    {"network_rate", "of bandwidth", &C::network_rate, 0.3, 0.98, 0.8, 0.15, 0.64136, "network in rings"},
    {"network_latency", "s", &C::network_latency, 4e-6, 1e-4, 2e-5, 0.4, 1.98435e-05,
     "a hop over the network"},
    {"tensor_overlap", "of time", &C::tensor_overlap, 0, 0.9, 0.6, 0.2, 0.9,
     "tensor-parallel communication that products hide"},
    {"data_overlap", "of time", &C::data_overlap, 0, 0.98, 0.75, 0.15, 0.735638,
     "gradients and parameters that other work hides"},
    {"context_overlap", "of time", &C::context_overlap, 0, 0.98, 0.8, 0.15, 0.814129,
     "keys and values that attention hides"},
    {"message_overlap", "of time", &C::message_overlap, 0, 0.98, 0.7, 0.2, 0.868846,
     "pipeline messages that other work hides"},
    {"message_stall", "s", &C::message_stall, 0, 1e-2, 1e-3, 0.5, 0.000697103,
     "host's wait at a pipeline message that is not overlapped"},
    {"shard_contention", "of time", &C::shard_contention, 0, 1, 0.2, 0.5, 0.181724,
     "hidden gathers of FSDP that slow products down"},
    {"straggler", "of time", &C::straggler, 0, 0.03, 0.005, 0.5, 0.00280539,
     "added at each doubling of the devices beyond one machine"},
    {"congestion", "1", &C::congestion, 0, 0.3, 0.04, 0.5, 0.0452544,
     "network bandwidth lost at each doubling of the machines of a group"},
    {"exchange_rate", "of bandwidth", &C::exchange_rate, 0.2, 1, 0.75, 0.15, 0.75,
     "link and network in NCCL's all-to-all of tokens between ranks of experts"},
    {"flex_rate", "of bandwidth", &C::flex_rate, 0.3, 1, 0.88, 0.1, 0.88,
     "network under DeepEP: its README's figures, less what stays on a machine, are 40 to 46 of 50 GB/s"},
    {"exchange_overlap", "of time", &C::exchange_overlap, 0, 0.98, 0.75, 0.2, 0.75,
     "of it, that other microbatches hide where a program overlaps it"},
    {"routing_launches", "kernels", &C::routing_launches, 10, 200, 60, 0.4, 60,
     "that router, permutation and exchange take in the forward pass, with their waits for the host"},
    {"expert_launches", "kernels", &C::expert_launches, 0, 10, 2, 0.4, 2,
     "that each expert of a rank takes in the forward pass, for both products"},
    {"optimizer_traffic", "1", &C::optimizer_traffic, 0.8, 4, 1.5, 0.3, 1.54569,
     "memory traffic of a step over its min"},
    {"step_overhead", "s", &C::step_overhead, 1e-3, 0.2, 0.02, 0.6, 0.0102831,
     "data, logging, gradient norm"},
    {"context_bytes", "B", &C::context_bytes, 2e8, 2e9, 7e8, 0.3, 8.44381e+08,
     "driver, kernels and libraries"},
    {"group_bytes", "B", &C::group_bytes, 5e7, 1.5e9, 3.5e8, 0.4, 4.80967e+08, "buffers of one communicator"},
    {"slack", "of bytes", &C::slack, 0, 0.25, 0.06, 0.4, 0.0695409,
     "reserved beside what changes from microbatch to microbatch"},
    {"eager_kept", "1", &C::eager_kept, 0.3, 1.5, 1, 0.15, 0.983958,
     "what norms by PyTorch's operators keep, of an fp32 and a 16-bit copy"},
    {"logit_copies", "B", &C::logit_copies, 4, 16, 8, 0.2, 9.87483, "a logit, with its softmax and gradient"},
    {"cached_share", "of bytes", &C::cached_share, 0, 1, 0.7, 0.3, 1,
     "memory of the step's other phase that the allocator keeps"},
    {"workspace_bytes", "B", &C::workspace_bytes, 1e7, 1e9, 1e8, 0.5, 1.12587e+08,
     "matrix products' workspace"},
    {"usable_share", "of memory", &C::usable_share, 0.85, 1, 0.95, 0.03, 0.967978,
     "of a device's memory, that a program comes to use before it runs out"},
    {"spread", "of time", &C::spread, 0.02, 0.4, 0.12, 0.5, 0.16335,
     "half width of the interval that holds 80 % of runs"},
    {"slower_spread", "of time", &C::slower_spread, 0.02, 1, 0.25, 0.5, 0.330178,
     "how much longer than predicted runs of code bases and devices without fitted runs take"},
    {"faster_spread", "of time", &C::faster_spread, 0.02, 1, 0.25, 0.5, 0.283124, "how much shorter"},
    {"expert_spread", "of time", &C::expert_spread, 0.02, 1, 0.39, 0.5, 0.39,
     "the same of mixtures of experts, to which no coefficient was fitted"},
    {"memory_spread", "of bytes", &C::memory_spread, 0.005, 0.3, 0.06, 0.5, 0.0623177,
     "standard deviation of what a run needs about what is predicted"},
};

const CoefficientInfo* find(std::string_view name) {
  for (const CoefficientInfo& info : kTable)
    if (name == info.name) return &info;
  return nullptr;
}

Coefficients fit() {
  Coefficients c{};
  for (const CoefficientInfo& info : kTable) c.*info.member = info.fitted;
  return c;
}

}  // namespace

std::span<const CoefficientInfo> coefficient_table() {
  return kTable;
}

const Coefficients& fitted_coefficients() {
  static const Coefficients kAllRuns = fit();
  return kAllRuns;
}

bool has_fitted_runs(std::string_view device) {
  static constexpr std::string_view kDevices[] = {"V100-SXM2-32GB", "A100-SXM-40GB", "A100-SXM-80GB",
                                                  "H100-SXM-80GB",  "H100-SXM-96GB", "B200-180GB",
                                                  "GB200-186GB",    "GB300-288GB"};
  return std::find(std::begin(kDevices), std::end(kDevices), device) != std::end(kDevices);
}

Coefficients read_coefficients(const std::string& path, const Coefficients& fitted) {
  Coefficients out = fitted;
  const std::vector<std::string> lines = split(read_file(path), '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = trim(std::string_view(lines[i]).substr(0, lines[i].find('#')));
    if (line.empty()) continue;
    const size_t blank = line.find(' ');
    const CoefficientInfo* info = find(line.substr(0, blank));
    if (!info)
      fail(ErrorKind::kData, path, ":", i + 1, ": ", quote(line.substr(0, blank)), " is not a coefficient");
    const auto value = blank == line.npos ? std::nullopt : parse_double(trim(line.substr(blank)));
    if (!value || !(*value >= info->low && *value <= info->high))
      fail(ErrorKind::kData, path, ":", i + 1, ": ", quote(line), ": wanted a number from ", info->low,
           " to ", info->high, " ", info->unit);
    out.*info->member = *value;
  }
  return out;
}

}  // namespace megalith
