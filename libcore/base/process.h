#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace megalith {

/// Wall time in seconds since `start`.
double seconds_since(std::chrono::steady_clock::time_point start);

/// The time in seconds since 1970.
double seconds_since_1970();

/// The largest amount of physical memory, in bytes, that this process has used so far.
uint64_t peak_memory();

/// The words of this process's command line, the name of its program first.
std::vector<std::string> own_words();

/// The value of an environment variable; empty if it is not set.
std::string environment(const char* name);

/// The number of NVIDIA devices that this process would see. If CUDA_VISIBLE_DEVICES is set, counts its words
/// as torch does (torch/cuda/__init__.py, _parse_visible_devices): up to the first word that does not name a
/// device, without checking that the devices exist, and 0 if a device is named twice. If the variable is not
/// set, counts all devices of the machine.
int visible_gpus();

}  // namespace megalith
