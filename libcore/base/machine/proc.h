#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// What /proc and the control groups of this process say of the machine. `root`: the folder that stands for /,
// in tests one with files of their own.

namespace megalith {

/// The processor's name in /proc/cpuinfo; "unknown" if there is none.
std::string processor_name();

/// The line NAME ("MemTotal", "MemAvailable") of /proc/meminfo, in bytes; nothing if there is none.
std::optional<size_t> meminfo(std::string_view name, const std::string& root = {});

/// The memory limit, in bytes, of the control groups of this process (a container, a job of a scheduler);
/// nothing if none is set.
std::optional<size_t> group_memory_limit(const std::string& root = {});

/// Bytes that this process can still allocate on this machine: what the system has available, or less if a
/// control group sets a limit. Pages of files that the system can drop count as available. Nothing if the
/// system does not report it.
std::optional<size_t> available_memory(const std::string& root = {});

/// The CPUs whose time the control groups of this process grant it (cpu.max of version 2, cpu.cfs_quota_us of
/// version 1): 1.5 for 150 ms in each 100 ms. Nothing if none sets a limit. A container or a pod of a few
/// CPUs may run on all cores of its machine, but only for so long.
std::optional<double> group_cpu_limit(const std::string& root = {});

/// The number of threads that this process can keep busy, at least 1: the CPUs that it may run on, or fewer
/// if a control group limits their time (a part of a CPU counts as one).
int usable_cpus(const std::string& root = {});

}  // namespace megalith
