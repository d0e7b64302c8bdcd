#include "libcore/plan/request/machine_of.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/plan/price/rules.h"

namespace megalith {
namespace {

std::optional<double> memory_from_environment() {
  const char* text = std::getenv("DEVICE_MEMORY_GB");
  if (!text || !*text) return std::nullopt;
  const auto gb = parse_double(text);
  if (!gb || *gb <= 0 || !std::isfinite(*gb))
    fail(ErrorKind::kUsage, "DEVICE_MEMORY_GB is ", quote(text), ", wanted a number of 1e9 bytes");
  return gb;
}

/// The option that asks for an attention kernel that keeps no scores; empty: none.
std::string flash_option(const PlanCommand& command) {
  const PlanOptions& plan = command.plan;
  const AttentionKernel kernel = plan.attention;
  if (command.gives("attention-kernel") && !keeps_scores(kernel))
    return concat("--attention-kernel ", enum_name(kernel));
  if (plan.attention_backend == "flash" || plan.attention_backend == "fused")
    return "--attention-backend " + plan.attention_backend;
  return plan.flash_attention.value_or(false) ? "--use-flash-attn" : "";
}

/// Throws kUsage if the device lacks what the command asks for.
void check_abilities(const PlanCommand& command, const Accelerator& device, const AcceleratorList& list) {
  const PlanOptions& plan = command.plan;
  const auto needs = [&](const std::string& option, const char* what, const auto& has) {
    if (has(device)) return;
    std::vector<std::string> others;
    for (const Accelerator& other : list.devices())
      if (has(other)) others.push_back(other.name);
    fail(ErrorKind::kUsage, option, ": ", device.name, " has no ", what,
         "; leave it out, or plan for one of ", join(others, ", "));
  };
  const auto computes = [&](const std::string& option, Precision precision) {
    if (const char* const what = missing_products(device, precision))
      needs(option, what, [&](const Accelerator& d) { return !missing_products(d, precision); });
  };
  if (!plan.fp4_format.empty()) computes("--fp4-format " + plan.fp4_format, Precision::kNvfp4);
  if (!plan.fp8_format.empty()) computes("--fp8-format " + plan.fp8_format, Precision::kFp8);
  if (!plan.fp8_format.empty() && plan.fp8_recipe == "mxfp8")
    computes("--fp8-recipe mxfp8", Precision::kMxfp8);
  if (command.train.bf16)
    needs("--bf16", "products in bf16; give --fp16", [](const Accelerator& d) { return d.bfloat16; });
  if (const std::string option = flash_option(command); !option.empty())
    needs(option, "attention kernels that keep no scores", [](const Accelerator& d) { return d.flash; });
  if (command.gives("tp-comm-overlap") && plan.overlap_tensor)
    needs("--tp-comm-overlap", "exchange of tensor ranks during products",
          [](const Accelerator& d) { return d.tensor_overlap; });
}

/// The number of devices. Where none is given: one, or, if the question is how many there should be, those of
/// one machine if --local-world-size says how many these are.
int world_of(const PlanCommand& command, const GivenWorld& given) {
  const PlanOptions& plan = command.plan;
  const bool asks = plan.train_tokens || plan.deadline_days || plan.budget || !plan.simulate.empty();
  if (given.world == 0 && asks) return std::max(given.local, 1);
  return std::max(given.world, 1);
}

}  // namespace

Machine machine_of(const PlanCommand& command, const GivenWorld& given) {
  const PlanOptions& plan = command.plan;
  AcceleratorList list = AcceleratorList::installed();
  for (const std::string& file : plan.gpu_files) list.add_file(file);
  Machine machine;
  machine.device = plan.local() ? measure_this_machine() : list.find(plan.gpu);
  check_abilities(command, machine.device, list);
  const auto gb = plan.memory_gb ? plan.memory_gb : memory_from_environment();
  if (gb) machine.device.memory = *gb * 1e9;
  if (plan.network_gbps) machine.device.network_bandwidth = *plan.network_gbps * 1e9 / 8;
  const int world = world_of(command, given);
  if (given.local > world || (given.local > 0 && world % given.local != 0))
    fail(ErrorKind::kUsage, given.world > 0 ? given.world_source : "a world of 1 device",
         " is not a multiple of ", given.local_source);
  machine.link_domain = plan.link_domain.value_or(0);
  machine.shares_processor = plan.local();
  machine.shares_memory = plan.local() && !gb;
  set_machines(machine, world, given.local);
  return machine;
}

}  // namespace megalith
