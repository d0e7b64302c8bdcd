#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// What /proc and the control group of this process say of the machine.

namespace megalith {

/// The processor's name in /proc/cpuinfo; "unknown" if there is none.
std::string processor_name();

/// The line NAME ("MemTotal", "MemAvailable") of /proc/meminfo, in bytes; nothing if there is none.
std::optional<size_t> meminfo(std::string_view name);

/// The memory limit, in bytes, of the control group (a container) of this process; nothing if none is set.
std::optional<size_t> group_memory_limit();

/// Bytes that this process can still allocate on this machine: what the system has available, or less if the
/// control group sets a limit. Nothing if the system does not report it.
std::optional<size_t> available_memory();

}  // namespace megalith
