#include "libcore/plan/coefficients.h"

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/file.h"

namespace megalith {
namespace {

using C = Coefficients;

// name, unit, member, bounds, belief before the fit, its relative spread, the fit (tools/plan_fit --install),
// meaning
constexpr CoefficientInfo kTable[] = {
    {"sustained_clock", "of peak", &C::sustained_clock, 0.6, 1.0, 0.88, 0.06, 0.849573,
     "matrix rate that an A100 holds in large products"},
    {"clock_power_exponent", "1", &C::clock_power_exponent, 0, 0.8, 0.3, 0.4, 0.350491,
     "how that falls with watts for each FLOP/s, relative to an A100"},
    {"gemm_half_depth", "elements", &C::gemm_half_depth, 20, 1000, 250, 0.5, 426.997,
     "inner dimension at which a product reaches half its rate"},
    {"wave_weight", "of time", &C::wave_weight, 0, 1, 0.6, 0.4, 0.468019,
     "part of a product that tile and wave quantisation slow down"},
    {"misaligned_rate", "of rate", &C::misaligned_rate, 0.4, 1, 0.75, 0.15, 0.61033,
     "products with a size that is no multiple of 64"},
    {"narrow_rate", "of gain", &C::narrow_rate, 0.2, 1, 0.7, 0.2, 0.952911,
     "what 8 and 4 bits reach of their data-sheet gain over 16"},
    {"flash1_rate", "of rate", &C::flash1_rate, 0.1, 0.8, 0.45, 0.2, 0.33835,
     "first flash attention, forward"},
    {"flash2_rate", "of rate", &C::flash2_rate, 0.2, 0.95, 0.7, 0.15, 0.597123,
     "second flash attention, forward"},
    {"fused_rate", "of rate", &C::fused_rate, 0.2, 0.98, 0.75, 0.15, 0.773273,
     "cuDNN's and Transformer Engine's attention, forward"},
    {"flash_backward", "of forward", &C::flash_backward, 0.5, 1, 0.8, 0.1, 0.73919,
     "rate of its backward pass"},
    {"old_mma_rate", "of rate", &C::old_mma_rate, 0.3, 1, 0.6, 0.15, 0.674606,
     "flash kernels written for Ampere, on later devices"},
    {"head_half_depth", "channels", &C::head_half_depth, 0, 128, 20, 0.5, 27.3895,
     "head size at which attention reaches half its rate"},
    {"torch_passes", "passes", &C::torch_passes, 2, 16, 7, 0.3, 8.23907,
     "more passes over the scores without a fused softmax"},
    {"memory_rate", "of bandwidth", &C::memory_rate, 0.5, 0.98, 0.82, 0.08, 0.83537, "memory-bound kernels"},
    {"host_launch", "s", &C::host_launch, 1e-6, 4e-5, 1.4e-5, 0.4, 1.77494e-05,
     "host's time to start a kernel"},
    {"kernel_gap", "s", &C::kernel_gap, 5e-7, 1e-5, 2.5e-6, 0.4, 2.24794e-06,
     "device's idle time between two kernels"},
    {"compiled_share", "of kernels", &C::compiled_share, 0.3, 1, 0.6, 0.2, 0.6,
     "that a compiled program still starts"},
    {"checkpoint_launches", "kernels", &C::checkpoint_launches, 0, 200, 40, 0.4, 44.1003,
     "host's work for keeping and restoring what a recomputed layer needs, in kernel starts"},
    {"link_rate", "of bandwidth", &C::link_rate, 0.4, 0.95, 0.75, 0.1, 0.766776, "NVLink in rings"},
    {"link_latency", "s", &C::link_latency, 1e-6, 3e-5, 5e-6, 0.4, 4.89012e-06, "a hop over NVLink"},
    {"network_rate", "of bandwidth", &C::network_rate, 0.3, 0.98, 0.8, 0.15, 0.612226, "network in rings"},
    {"network_latency", "s", &C::network_latency, 4e-6, 1e-4, 2e-5, 0.4, 2.00828e-05,
     "a hop over the network"},
    {"tensor_overlap", "of time", &C::tensor_overlap, 0, 0.9, 0.6, 0.2, 0.9,
     "tensor-parallel communication that products hide"},
    {"data_overlap", "of time", &C::data_overlap, 0, 0.98, 0.75, 0.15, 0.70908,
     "gradients and parameters that other work hides"},
    {"context_overlap", "of time", &C::context_overlap, 0, 0.98, 0.8, 0.15, 0.825703,
     "keys and values that attention hides"},
    {"message_overlap", "of time", &C::message_overlap, 0, 0.98, 0.7, 0.2, 0.942178,
     "pipeline messages that other work hides"},
    {"message_stall", "s", &C::message_stall, 0, 1e-2, 1e-3, 0.5, 0.00092156,
     "host's wait at a pipeline message that is not overlapped"},
    {"shard_contention", "of time", &C::shard_contention, 0, 1, 0.2, 0.5, 0.196121,
     "hidden gathers of FSDP that slow products down"},
    {"straggler", "of time", &C::straggler, 0, 0.03, 0.005, 0.5, 0.0034296,
     "added at each doubling of the devices beyond one machine"},
    {"congestion", "1", &C::congestion, 0, 0.3, 0.04, 0.5, 0.0406844,
     "network bandwidth lost at each doubling of the machines of a group"},
    {"optimizer_traffic", "1", &C::optimizer_traffic, 0.8, 4, 1.5, 0.3, 1.41801,
     "memory traffic of a step over its least"},
    {"step_overhead", "s", &C::step_overhead, 1e-3, 0.2, 0.02, 0.6, 0.0134641,
     "data, logging, gradient norm"},
    {"context_bytes", "B", &C::context_bytes, 2e8, 2e9, 7e8, 0.3, 8.45306e+08,
     "driver, kernels and libraries"},
    {"group_bytes", "B", &C::group_bytes, 5e7, 1.5e9, 3.5e8, 0.4, 4.89417e+08, "buffers of one communicator"},
    {"slack", "of bytes", &C::slack, 0, 0.25, 0.06, 0.4, 0.0700572,
     "reserved beside what changes from microbatch to microbatch"},
    {"eager_kept", "1", &C::eager_kept, 0.3, 1.5, 1, 0.15, 0.988019,
     "what norms by PyTorch's operators keep, of an fp32 and a 16-bit copy"},
    {"logit_copies", "B", &C::logit_copies, 4, 16, 8, 0.2, 9.46922, "a logit, with its softmax and gradient"},
    {"cached_share", "of bytes", &C::cached_share, 0, 1, 0.7, 0.3, 1,
     "memory of the step's other phase that the allocator keeps"},
    {"workspace_bytes", "B", &C::workspace_bytes, 1e7, 1e9, 1e8, 0.5, 1.12637e+08,
     "matrix products' workspace"},
    {"usable_share", "of memory", &C::usable_share, 0.85, 1, 0.95, 0.03, 0.984748,
     "of a device's memory, that a program comes to use before it runs out"},
    {"spread", "of time", &C::spread, 0.02, 0.4, 0.12, 0.5, 0.16,
     "half width of the interval that holds 80 % of runs"},
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
  static const Coefficients kFit = fit();
  return kFit;
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
      fail(ErrorKind::kData, path, ":", i + 1, ": ", quote(line.substr(0, blank)), " is no coefficient");
    const auto value = blank == line.npos ? std::nullopt : parse_double(trim(line.substr(blank)));
    if (!value || !(*value >= info->low && *value <= info->high))
      fail(ErrorKind::kData, path, ":", i + 1, ": ", quote(line), ": wanted a number from ", info->low,
           " to ", info->high, " ", info->unit);
    out.*info->member = *value;
  }
  return out;
}

}  // namespace megalith
