#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libcore/options/fields.h"
#include "libcore/plan/device/machine.h"

namespace megalith {

/// What a plan is made for, whether the planner or a training run requests it.
struct PlanTarget {
  std::string gpu = "A100-SXM-80GB";
  std::optional<double> memory_gb;
  int64_t max_global_batch = 0;

  /// Whether the plan is for this machine's processor.
  bool local() const { return gpu == "local"; }

  template <class V>
  void fields(V&& v) {
    v("gpu", gpu, "Kind of device to plan for, or \"local\" for this machine's processor.", metavar("NAME"),
      offers(accelerator_names));
    v("device-memory-gb", memory_gb,
      "Memory of a device in 1e9 bytes; a run that is not planned and would need more does not begin.",
      positive(), default_text("$DEVICE_MEMORY_GB, else the device's; not planned: no limit"));
    v("max-global-batch-size", max_global_batch,
      "Use the largest global batch up to this that a plan allows.", at_least(1),
      default_text("--global-batch-size exactly"));
  }
};

}  // namespace megalith
