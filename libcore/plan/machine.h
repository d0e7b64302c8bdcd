#pragma once

#include <span>
#include <string>
#include <vector>

namespace megalith {

/// One kind of device by its data sheet: dense rates without sparsity. Sources: the vendors' data sheets; see
/// docs/planner.md.
struct Accelerator {
  std::string name;
  double half_flops = 0;         // bf16/fp16 FLOP/s, dense
  double float_flops = 0;        // fp32 FLOP/s
  double memory = 0;             // bytes that a job can have, of the nominal size
  double memory_bandwidth = 0;   // bytes/s
  double link_bandwidth = 0;     // bytes/s to a device of the same machine, one direction
  double network_bandwidth = 0;  // bytes/s to another machine, per device
  int multiprocessors = 0;       // 0: no wave quantisation (CPU)
};

/// All devices known by name.
std::span<const Accelerator> accelerators();

/// A device by name: upper and lower case, "-", " " and "_" are the same. kUsage with the nearest name when
/// unknown.
const Accelerator& find_accelerator(const std::string& name);

/// This machine's processor: cores, memory that is available now, and rates measured for about a tenth of a
/// second.
Accelerator measure_this_machine();

/// The devices that a plan is for.
struct Machine {
  Accelerator device;
  int world = 1;        // devices in all
  int local_world = 1;  // devices of one machine
};

}  // namespace megalith
