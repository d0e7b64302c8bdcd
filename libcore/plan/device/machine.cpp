#include "libcore/plan/device/machine.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/machine/proc.h"
#include "libcore/base/process.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/config/parallel_config.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/options/config_file.h"
#include "libcore/tensor/arena.h"

namespace megalith {
namespace {

constexpr double kTera = 1e12, kGiga = 1e9;

std::string folded(std::string_view name) {
  std::string out;
  for (char c : name)
    if (c != '-' && c != '_' && c != ' ')
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// The capability of "sm90"; nothing for another word.
std::optional<int> capability_of(const std::string& word) {
  if (!word.starts_with("sm")) return std::nullopt;
  const auto value = parse_int(word.substr(2));
  return value && *value > 0 && *value < 1000 ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

bool is_ability(const std::string& word) {
  return word == "flash" || word == "tp-overlap" || capability_of(word).has_value();
}

/// Takes the abilities from the end of a device's values, or the word "none"; empty if there is neither.
std::vector<std::string> take_abilities(std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (; !words.empty() && (is_ability(words.back()) || words.back() == "none"); words.pop_back())
    out.push_back(words.back());
  return out;
}

void set_abilities(Accelerator& device, const std::vector<std::string>& abilities) {
  device.flash = device.tensor_overlap = false;
  device.compute_capability = 0;
  for (const std::string& word : abilities) {
    device.flash = device.flash || word == "flash";
    device.tensor_overlap = device.tensor_overlap || word == "tp-overlap";
    if (const auto capability = capability_of(word)) device.compute_capability = *capability;
  }
}

/// NAME: [bf16 TFLOP/s, fp32 TFLOP/s, fp8 TFLOP/s, fp4 TFLOP/s, memory GB, memory TB/s, link GB/s one
/// direction, devices joined by the link, network Gbit/s, multiprocessors, W], followed by 0 if the only
/// 16-bit type is fp16, and by the device's abilities.
Accelerator device_of(FileOption option) {
  constexpr size_t kValues = 11;
  const std::vector<std::string> abilities = take_abilities(option.words);
  const size_t given = option.words.size();
  if (given != kValues && given != kValues + 1)
    fail(ErrorKind::kData, option.where, ": ", quote(option.key), " has ", given, " values, wanted ", kValues,
         " or ", kValues + 1, "; docs/gpus.yaml says which");
  double v[kValues + 1] = {};
  v[kValues] = 1;
  for (size_t i = 0; i < given; ++i) {
    const auto value = parse_double(option.words[i]);
    if (!value || !(*value >= 0) || *value > 1e9)
      fail(ErrorKind::kData, option.where, ": ", quote(option.key), ": value ", i + 1, " is ",
           quote(option.words[i]), ", wanted a number from 0");
    v[i] = *value;
  }
  for (size_t needed : {0, 1, 4, 5, 6, 8})
    if (v[needed] == 0)
      fail(ErrorKind::kData, option.where, ": ", quote(option.key), ": value ", needed + 1,
           " must be greater than 0");
  Accelerator device{.name = option.key,
                     .half_flops = v[0] * kTera,
                     .float_flops = v[1] * kTera,
                     .fp8_flops = v[2] * kTera,
                     .fp4_flops = v[3] * kTera,
                     .memory = v[4] * kGiga,
                     .memory_bandwidth = v[5] * kTera,
                     .link_bandwidth = v[6] * kGiga,
                     .network_bandwidth = v[8] * kGiga / 8,
                     .link_domain = std::max(1, static_cast<int>(v[7])),
                     .multiprocessors = static_cast<int>(v[9]),
                     .watts = v[10],
                     .bfloat16 = v[11] != 0};
  if (!abilities.empty()) set_abilities(device, abilities);
  return device;
}

/// The path of a file in share/megalith, next to the folder of the running program.
std::string installed_file(const char* name) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  return (program.parent_path().parent_path() / "share" / "megalith" / name).string();
}

/// Seconds of the fastest of many calls. Newly started threads may share a core until the scheduler separates
/// them, so the calls of the first fifty milliseconds can be half as fast as later ones.
double seconds_of(const auto& work) {
  constexpr double kProbed = 0.15;
  work();  // first call: page faults, primitive creation
  double best = 1e9;
  for (const auto begin = std::chrono::steady_clock::now(); seconds_since(begin) < kProbed;) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, seconds_since(start));
  }
  return best;
}

double memory_here() {
  if (const auto bytes = meminfo("MemAvailable")) return static_cast<double>(*bytes);
  fail(ErrorKind::kDevice, "/proc/meminfo: no line \"MemAvailable\"; give --device-memory-gb");
}

}  // namespace

double power_share(const Accelerator& device) {
  if (device.watts <= 0 || device.half_flops <= 0) return 0;
  constexpr double kReference = 400 / 312e12;  // W s / FLOP
  return device.watts / device.half_flops / kReference;
}

AcceleratorList AcceleratorList::installed() {
  AcceleratorList list;
  list.add_file(installed_file("gpus.yaml"));
  return list;
}

void AcceleratorList::add_file(const std::string& path) {
  std::vector<ShortName> short_names;
  std::vector<Accelerator> devices;
  for (const FileOption& option : read_config_file(path)) {
    if (option.key != printable(option.key))
      fail(ErrorKind::kData, option.where, ": the name ", quote_name(option.key),
           " has characters that no report can show");
    if (option.words.size() == 1)
      short_names.push_back({option.key, option.words.front(), option.where});
    else
      devices.push_back(device_of(option));
  }
  // A later file takes precedence, so its entries come first.
  short_names_.insert(short_names_.begin(), short_names.rbegin(), short_names.rend());
  devices_.insert(devices_.begin(), devices.rbegin(), devices.rend());
}

std::vector<std::string> AcceleratorList::names() const {
  std::vector<std::string> names;
  for (const ShortName& one : short_names_) names.push_back(one.name);
  for (const Accelerator& device : devices_) names.push_back(device.name);
  return names;
}

/// The short name `wanted`; nullptr if there is none.
const AcceleratorList::ShortName* AcceleratorList::short_name(const std::string& wanted) const {
  for (const ShortName& one : short_names_)
    if (folded(one.name) == wanted && folded(one.whole) != wanted) return &one;
  return nullptr;
}

/// The device named `wanted`. Otherwise, of the devices whose names begin with `wanted`, the one with the
/// most memory; nullptr if there is none.
const Accelerator* AcceleratorList::device(const std::string& wanted, const std::string& asked) const {
  const Accelerator* only = nullptr;
  int alike = 0;
  for (const Accelerator& device : devices_) {
    const std::string have = folded(device.name);
    if (have == wanted) return &device;
    if (wanted.empty() || !have.starts_with(wanted)) continue;
    ++alike;
    if (!only || device.memory > only->memory) only = &device;
  }
  if (alike > 1)
    log("--gpu ", asked, ": ", only->name, ", of the ", alike,
        " that begin so, the one with the most memory");
  return only;
}

const Accelerator& AcceleratorList::find(const std::string& name) const {
  std::string wanted = folded(name);
  const ShortName* last = nullptr;
  std::set<const ShortName*> passed;
  while (const ShortName* const next = short_name(wanted)) {
    if (!passed.insert(next).second)
      fail(ErrorKind::kData, next->where, ": the short name ", quote(next->name), " stands for ",
           quote(next->whole), ", which leads back to it; one of them must name a device");
    last = next;
    wanted = folded(next->whole);
  }
  if (const Accelerator* const found = device(wanted, name)) return *found;
  for (const ShortName& one : short_names_)
    if (folded(one.name) == wanted) last = &one;  // the short name at which the search ended
  if (last)
    fail(ErrorKind::kData, last->where, ": the short name ", quote(last->name), " stands for ",
         quote(last->whole), ", which is not a device; known are ", join(names(), ", "));
  std::vector<std::string> all = names(), small = all;
  for (std::string& one : small) one = folded(one);
  const auto near = nearest(folded(name), small);
  const auto which = near ? std::find(small.begin(), small.end(), *near) - small.begin() : 0;
  fail(ErrorKind::kUsage, "--gpu ", quote(name), " is not known",
       near ? "; did you mean " + quote(all[static_cast<size_t>(which)]) + "?" : "", "\n  known are ",
       join(all, ", "), ", and \"local\" for this machine's processor; --gpu-file FILE adds others");
}

std::vector<std::string> accelerator_names() {
  std::vector<std::string> names = AcceleratorList::installed().names();
  names.emplace_back("local");
  return names;
}

const Accelerator& find_accelerator(const std::string& name) {
  static const AcceleratorList kList = AcceleratorList::installed();
  return kList.find(name);
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
  const double gemm = seconds_of([&] { run(stream, Gemm{.c = c, .a = a, .b = b}); });
  const double copy = seconds_of([&] { stream.copy(to, from); });
  Accelerator device{.name = kLocalDevice};
  device.float_flops = device.half_flops = 2.0 * kSide * kSide * kSide / gemm;
  device.memory = memory_here();
  device.memory_bandwidth = 2.0 * static_cast<double>(from.bytes()) / copy;
  device.link_bandwidth = device.network_bandwidth = device.memory_bandwidth / 2;
  device.link_domain = ParallelConfig::kMaxRanks;
  return device;
}

void set_local_world(Machine& machine, int ranks) {
  Accelerator& d = machine.device;
  const double factor = static_cast<double>(machine.local_world) / ranks;
  if (machine.shares_memory) d.memory *= factor;
  if (machine.shares_processor)
    for (double Accelerator::*rate : {&Accelerator::half_flops, &Accelerator::float_flops,
                                      &Accelerator::memory_bandwidth, &Accelerator::link_bandwidth})
      d.*rate *= factor;
  machine.local_world = ranks;
}

void set_world(Machine& machine, int devices) {
  machine.machine_size = machine.whole();
  int ranks = std::min(machine.machine_size, devices);
  while (devices % ranks != 0) --ranks;
  machine.world = devices;
  set_local_world(machine, ranks);
}

void set_machines(Machine& machine, int world, int whole) {
  const Accelerator& device = machine.device;
  machine.machine_size = whole > 0 ? whole : device.link_domain;
  if (machine.link_domain == 0 && device.multiprocessors > 0 && device.link_domain > kLargestMachine)
    machine.link_domain = device.link_domain;
  set_world(machine, world);
}

}  // namespace megalith
