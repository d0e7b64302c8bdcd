#pragma once

#include <string>
#include <vector>

namespace megalith {

/// One kind of device according to its data sheet: dense rates without sparsity.
struct Accelerator {
  std::string name;
  double half_flops = 0;         // bf16/fp16 FLOP/s, dense
  double float_flops = 0;        // fp32 FLOP/s
  double fp8_flops = 0;          // 0: not supported
  double fp4_flops = 0;          // 0: not supported
  double memory = 0;             // the bytes of the nominal size that a job can use
  double memory_bandwidth = 0;   // bytes/s
  double link_bandwidth = 0;     // bytes/s to a device of the same machine, one direction
  double network_bandwidth = 0;  // bytes/s to another machine, per device
  int link_domain = 8;           // devices that the link joins
  int multiprocessors = 0;       // 0 for a CPU: no wave quantisation
  double watts = 0;
  bool bfloat16 = true;  // false: the only 16-bit type is fp16
  // Abilities. A device that is described by numbers alone counts as one with all of them.
  bool flash = true;            // attention kernels that keep no scores
  bool tensor_overlap = true;   // Transformer Engine's exchange of tensor ranks during products
  int compute_capability = 80;  // of CUDA, times ten; 0: no CUDA
  // The following are used only for a CPU, which has no data sheet; a profile may set them.
  double attention_share = 0.25;  // rate of attention's forward pass, relative to the matrix rate
  double half_depth = 0;          // inner dimension at which a product reaches half its rate
  double op_start = 1e-6;         // seconds per op in addition to its work
};

/// Watts per FLOP/s in 16 bits, relative to an A100's; 0: unknown.
double power_share(const Accelerator&);
/// The largest share of its peak that a device is assumed to sustain in products.
inline constexpr double kMostSustained = 0.98;

/// The devices that a user can name: those of the file installed with the programs (docs/gpus.yaml describes
/// its format), and those of the user's files, which take precedence.
class AcceleratorList {
 public:
  /// installed() and add_file() throw kNoInput when the file is missing, and kData with file and line when
  /// its contents are invalid.
  static AcceleratorList installed();
  void add_file(const std::string& path);

  /// Finds a device by its name. Case does not matter, and "-", " " and "_" are equal. A short name may refer
  /// to another short name. If `name` is only the beginning of several names, returns the one of these
  /// devices with the most memory. kUsage, with the nearest name, when the name is unknown; kData when short
  /// names form a cycle or lead to no device.
  const Accelerator& find(const std::string& name) const;
  const std::vector<Accelerator>& devices() const { return devices_; }
  std::vector<std::string> names() const;  // short names first

 private:
  struct ShortName {
    std::string name, whole, where;  // `where`: "gpus.yaml:27"
  };
  const ShortName* short_name(const std::string& wanted) const;
  const Accelerator* device(const std::string& wanted, const std::string& asked) const;

  std::vector<Accelerator> devices_;
  std::vector<ShortName> short_names_;
};

/// Finds a device of the installed file, as AcceleratorList::find() does.
const Accelerator& find_accelerator(const std::string& name);

/// The names that --gpu accepts, except those in a --gpu-file.
std::vector<std::string> accelerator_names();

/// The Accelerator::name of this machine's processor.
inline constexpr char kLocalDevice[] = "this machine's processor";

/// Measures the rates of this machine's processor for about a third of a second. Its memory is what is
/// available now, and is shared by all ranks.
Accelerator measure_this_machine();

/// The devices that a plan is for.
struct Machine {
  Accelerator device;
  int world = 1;        // total number of devices
  int local_world = 1;  // devices per machine
  /// The devices of a whole machine, where the world is too small for one; 0: local_world.
  int machine_size = 0;
  /// Set when the ranks of a machine run on one processor: `device` then holds one rank's share of the
  /// processor's rates (shares_processor) or of its memory (shares_memory).
  bool shares_processor = false, shares_memory = false;
  /// Devices that the link joins, on several machines or on a part of one; 0: local_world.
  int link_domain = 0;

  int whole() const { return machine_size > 0 ? machine_size : local_world; }
  int domain() const { return link_domain > 0 ? link_domain : local_world; }
};

/// Sets the number of ranks per machine. If they share the processor or its memory, rescales each rank's
/// share.
void set_local_world(Machine&, int ranks);
/// Sets the number of all devices. A machine then has as many as a whole one, or as the next smaller number
/// that divides them.
void set_world(Machine&, int devices);

/// Sets the number of all devices, in machines of `whole`, or of as many as the link joins (0). A link that
/// joins more devices than a machine has joins them here, too, unless link_domain is already set.
void set_machines(Machine&, int world, int whole = 0);

/// The most devices that one machine has. A link that joins more devices joins several machines.
inline constexpr int kLargestMachine = 16;

}  // namespace megalith
