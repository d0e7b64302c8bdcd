#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "libcore/ops/backend/backend.h"
#include "libcore/ops/backend/device_memory.h"
#include "libcore/train/log/run_observer.h"

namespace megalith {

/// The memory of the backend's GPU; nothing for the CPU.
std::optional<cuda::DeviceMemory> device_memory(const Backend&);

/// An observer that logs at the end how much memory of a rank's GPU the run took, beside the estimate.
/// `before`: device_memory() before the run took any; for the CPU the result is null. `estimated`: bytes. The
/// backend must outlive the result.
std::unique_ptr<RunObserver> device_memory_log(const Backend&,
                                               const std::optional<cuda::DeviceMemory>& before,
                                               size_t estimated);

}  // namespace megalith
