#include "libcore/plan/machine.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/ops/backend.h"
#include "libcore/tensor/arena.h"

namespace megalith {
namespace {

constexpr double kTera = 1e12, kGiga = 1e9;

/// bf16 TFLOP/s, fp32 TFLOP/s, memory GB, HBM TB/s, link GB/s one direction, NIC Gbit/s per device,
/// multiprocessors.
Accelerator row(const char* name, double half, double full, double gb, double hbm, double link, double nic,
                int sms) {
  return {name, half * kTera, full * kTera, gb * kGiga, hbm * kTera, link * kGiga, nic * kGiga / 8, sms};
}

const std::vector<Accelerator>& table() {
  static const std::vector<Accelerator> kTable = {
      row("V100-SXM2-16GB", 125, 15.7, 16.9, 0.90, 150, 25, 80),
      row("V100-SXM2-32GB", 125, 15.7, 34.1, 0.90, 150, 25, 80),
      row("A100-SXM-40GB", 312, 19.5, 42.3, 1.555, 300, 200, 108),
      row("A100-SXM-80GB", 312, 19.5, 85.0, 2.039, 300, 200, 108),
      row("A100-PCIe-80GB", 312, 19.5, 85.0, 1.935, 32, 100, 108),
      row("A800-80GB", 312, 19.5, 85.0, 2.039, 200, 200, 108),
      row("H100-SXM-80GB", 989, 67, 85.0, 3.35, 450, 400, 132),
      row("H100-PCIe-80GB", 756, 51, 85.0, 2.0, 64, 200, 114),
      row("H800-80GB", 989, 67, 85.0, 3.35, 200, 400, 132),
      row("H20-96GB", 148, 44, 102.0, 4.0, 450, 400, 78),
      row("H200-141GB", 989, 67, 150.0, 4.8, 450, 400, 132),
      row("B200-180GB", 2250, 75, 191.0, 8.0, 900, 400, 148),
      row("B300-288GB", 2250, 75, 288.0, 8.0, 900, 800, 148),
      row("GB200-186GB", 2450, 80, 197.0, 8.0, 900, 400, 152),
      row("GB300-288GB", 2450, 80, 288.0, 8.0, 900, 800, 152),
      row("L40S-48GB", 362, 91.6, 48.3, 0.864, 32, 100, 142),
      row("RTX3090-24GB", 71, 35.6, 25.4, 0.936, 32, 25, 82),
      row("RTX4090-24GB", 165, 82.6, 25.4, 1.008, 32, 25, 128),
      row("MI300X-192GB", 1307, 163, 206.0, 5.3, 448, 400, 304),
  };
  return kTable;
}

std::string folded(std::string_view name) {
  std::string out;
  for (char c : name)
    if (c != '-' && c != '_' && c != ' ')
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

double seconds_of(const auto& work, int repeats) {
  work();  // first call: page faults, primitive creation
  double best = 1e9;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, seconds_since(start));
  }
  return best;
}

double available_memory() {
  std::ifstream meminfo("/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);)
    if (line.starts_with("MemAvailable:"))
      if (const auto kib = parse_int(trim(line.substr(13, line.find("kB") - 13))))
        return static_cast<double>(*kib) * 1024;
  fail(ErrorKind::kDevice, "/proc/meminfo: no line \"MemAvailable\"; give --device-memory-gb");
}

}  // namespace

std::span<const Accelerator> accelerators() {
  return table();
}

const Accelerator& find_accelerator(const std::string& name) {
  const std::string wanted = folded(name);
  const Accelerator* only = nullptr;
  std::vector<std::string> names;
  for (const Accelerator& device : table()) {
    names.push_back(device.name);
    const std::string have = folded(device.name);
    if (have == wanted) return device;
    if (have.starts_with(wanted) && !wanted.empty() && (!only || device.memory > only->memory))
      only = &device;
  }
  if (only) return *only;  // "H100" is the H100 with the most memory
  const auto near = nearest(name, names);
  fail(ErrorKind::kUsage, "--gpu ", quote(name), " is not known",
       near ? "; did you mean " + quote(*near) + "?" : "", " known are ", join(names, ", "),
       ", and \"local\" for this machine's processor");
}

Accelerator measure_this_machine() {
  const std::unique_ptr<Backend> cpu = make_cpu_backend();
  Stream stream = cpu->make_stream();
  constexpr int64_t kSide = 768;
  constexpr int64_t kCopied = int64_t{1} << 23;  // elements; larger than the caches
  Arena arena("probe", cpu->allocate(static_cast<size_t>(3 * kSide * kSide + 2 * kCopied) * 4 + 4096));
  View a = arena.make(DType::kF32, {kSide, kSide}, "a"), b = arena.make(DType::kF32, {kSide, kSide}, "b");
  View c = arena.make(DType::kF32, {kSide, kSide}, "c");
  View from = arena.make(DType::kF32, {kCopied}, "from"), to = arena.make(DType::kF32, {kCopied}, "to");
  stream.fill(a, 1);
  stream.fill(b, 1);
  stream.fill(from, 1);
  const double gemm = seconds_of([&] { run(stream, Gemm{.c = c, .a = a, .b = b}); }, 5);
  const double copy = seconds_of([&] { stream.copy(to, from); }, 3);
  Accelerator device{.name = "this machine's processor"};
  device.float_flops = device.half_flops = 2.0 * kSide * kSide * kSide / gemm;
  device.memory = available_memory();
  device.memory_bandwidth = 2.0 * static_cast<double>(from.bytes()) / copy;
  device.link_bandwidth = device.network_bandwidth = device.memory_bandwidth / 2;
  return device;
}

}  // namespace megalith
