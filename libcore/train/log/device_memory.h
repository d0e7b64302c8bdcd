#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "libcore/ops/backend/backend.h"
#include "libcore/train/log/run_observer.h"

namespace megalith {

/// Bytes of a GPU's memory that are free; nothing for the CPU.
std::optional<size_t> free_device_memory(const Backend&);

/// An observer that logs at the end how much memory of a GPU the run took, beside the estimate.
/// `free_before`: free_device_memory() before the run took any; for the CPU the result is null. `estimated`:
/// bytes.
std::unique_ptr<RunObserver> device_memory_log(std::optional<size_t> free_before, size_t estimated);

}  // namespace megalith
