#include "libcore/plan/request/world.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/launch/environment.h"
#include "libcore/options/config_file.h"
#include "libcore/plan/price/rules.h"

namespace megalith {
namespace {

std::optional<double> memory_from_environment() {
  const char* text = std::getenv("DEVICE_MEMORY_GB");
  if (!text || !*text) return std::nullopt;
  const auto gb = parse_double(text);
  if (!gb || *gb <= 0 || !std::isfinite(*gb))
    fail(ErrorKind::kUsage, "DEVICE_MEMORY_GB is ", quote(text), ", wanted a number of 1e9 bytes");
  return gb;
}

std::string source_of(const char* option, int value) {
  return concat(option, ' ', value);
}

/// A line of a cluster's file, read into what the command line leaves open.
class ClusterLine {
 public:
  ClusterLine(const FileOption& line, bool taken) : line_(line), taken_(taken) {
    if (line.words.size() == 1) number_ = parse_double(line.words.front());
  }

  void name(std::string& name) const {
    check(line_.words.size() == 1, "a name");
    if (!taken_) name = line_.words.front();
  }
  void devices(int& count, std::string& source) const {
    const auto whole = line_.words.size() == 1 ? parse_int(line_.words.front()) : std::nullopt;
    check(whole && *whole >= 1 && *whole <= ParallelConfig::kMaxRanks, "a number of devices");
    if (taken_) return;
    count = static_cast<int>(*whole);
    source = concat(line_.key, ' ', count, " (", line_.where, ')');
  }
  std::optional<int> devices(std::optional<int> given) const {
    const auto whole = line_.words.size() == 1 ? parse_int(line_.words.front()) : std::nullopt;
    check(whole && *whole >= 1 && *whole <= ParallelConfig::kMaxRanks, "a number of devices");
    return taken_ ? given : static_cast<int>(*whole);
  }
  std::optional<double> amount(std::optional<double> given) const {
    check(number_ && *number_ > 0 && std::isfinite(*number_), "a number above 0");
    return taken_ ? given : number_;
  }

 private:
  void check(bool valid, const char* wanted) const {
    if (!valid)
      fail(ErrorKind::kData, line_.where, ": ", line_.key, " is ", quote(join(line_.words, " ")), ", wanted ",
           wanted);
  }

  const FileOption& line_;
  bool taken_;
  std::optional<double> number_;
};

void take_cluster(PlanCommand& command, const Options& given, GivenWorld& sizes) {
  PlanOptions& plan = command.plan;
  for (const FileOption& option : read_config_file(plan.cluster)) {
    const auto line = [&] { return ClusterLine(option, given.given(option.key)); };
    if (option.key == "gpu")
      line().name(plan.gpu);
    else if (option.key == "world-size")
      line().devices(sizes.world, sizes.world_source);
    else if (option.key == "local-world-size")
      line().devices(sizes.local, sizes.local_source);
    else if (option.key == "link-domain")
      plan.link_domain = line().devices(plan.link_domain);
    else if (option.key == "network-gbps")
      plan.network_gbps = line().amount(plan.network_gbps);
    else if (option.key == "device-memory-gb")
      plan.memory_gb = line().amount(plan.memory_gb);
    else if (option.key == "gpu-hour-price")
      plan.gpu_hour = *line().amount(plan.gpu_hour);
    else
      fail(ErrorKind::kData, option.where, ": ", quote(option.key),
           " says nothing about a cluster; known are gpu, world-size, local-world-size, link-domain, "
           "network-gbps, device-memory-gb, gpu-hour-price");
  }
}

/// Throws kUsage where the device has no products in the format that was asked for.
void check_format(const PlanCommand& command, const Accelerator& device, const AcceleratorList& list) {
  const PlanOptions& plan = command.plan;
  const auto needs = [&](const std::string& option, const char* what, const auto& has) {
    if (has(device)) return;
    std::vector<std::string> others;
    for (const Accelerator& other : list.devices())
      if (has(other)) others.push_back(other.name);
    fail(ErrorKind::kUsage, option, ": ", device.name, " has no ", what,
         "; leave it out, or plan for one of ", join(others, ", "));
  };
  const auto computes = [&](const std::string& option, Precision precision) {
    if (const char* const what = missing_products(device, precision))
      needs(option, what, [&](const Accelerator& d) { return !missing_products(d, precision); });
  };
  if (!plan.fp4_format.empty()) computes("--fp4-format " + plan.fp4_format, Precision::kNvfp4);
  if (!plan.fp8_format.empty()) computes("--fp8-format " + plan.fp8_format, Precision::kFp8);
  if (!plan.fp8_format.empty() && plan.fp8_recipe == "mxfp8")
    computes("--fp8-recipe mxfp8", Precision::kMxfp8);
  if (command.train.bf16)
    needs("--bf16", "products in bf16; give --fp16", [](const Accelerator& d) { return d.bfloat16; });
}

/// --nproc says the ranks of this process, which are all, or those of a machine.
void take_processes(const PlanCommand& command, GivenWorld& sizes) {
  const int ranks = ParallelConfig::ranks_of(command.parallel.nproc);
  if (ranks == 0) return;
  const std::string nproc = source_of("--nproc", ranks);
  if (sizes.world == 0) {
    sizes.world = ranks;
    sizes.world_source = nproc;
  } else if (sizes.world != ranks && sizes.local != ranks) {
    fail(ErrorKind::kUsage, sizes.world_source, " and ", nproc,
         " contradict each other; leave one of them out, or give --local-world-size ", ranks,
         " too if those are the ranks of a machine");
  }
}

/// In the script of sbatch there is one process, whose variables count the tasks that srun would start.
void tell_of_batch_job(const Environment& environment) {
  const char* const tasks = environment("SLURM_NTASKS");
  if (!tasks || environment("SLURM_STEP_ID")) return;
  const char* const local = environment("SLURM_NTASKS_PER_NODE");
  log("SLURM_NTASKS=", tasks,
      " of the batch job is not taken, because srun starts its tasks and not this "
      "script; to plan for them give --world-size ",
      tasks, local ? concat(" --local-world-size ", local) : std::string());
}

void take_launcher(bool counts_servers, GivenWorld& sizes) {
  const Environment filled = [](const char* name) -> const char* {
    const char* const text = std::getenv(name);
    return text && *text ? text : nullptr;
  };
  const LaunchSizes told = read_launch_sizes(filled, counts_servers);
  if (told.world == 0) return tell_of_batch_job(filled);
  sizes.world = told.world;
  sizes.world_source = told.world_source;
  if (sizes.local != 0 || told.local_world == 0) return;
  sizes.local = told.local_world;
  sizes.local_source = told.local_source;
}

/// A size and the option that says it; 0: none does.
struct ToldSize {
  int size = 0;
  std::string source = {};
};

ToldSize told_data_ranks(const PlanCommand& command, const Options& given) {
  const int data = given.given("data-parallel-size") ? command.parallel.data : 0;
  const auto& [degree_option, degree] = command.data_ranks;
  const std::string of_data = source_of("--data-parallel-size", data);
  const std::string of_degree = source_of(degree_option, degree);
  if (data > 0 && degree > 0 && data != degree)
    fail(ErrorKind::kUsage, of_degree, " and ", of_data,
         " contradict each other: --sharding cuts over all data-parallel ranks; leave one of them out");
  return data > 0 ? ToldSize{data, of_data} : ToldSize{degree, of_degree};
}

}  // namespace

GivenWorld take_world(PlanCommand& command, const Options& given) {
  ParallelConfig& parallel = command.parallel;
  GivenWorld sizes;
  if (given.given("world-size") && parallel.world > 0)
    sizes = {.world = parallel.world, .world_source = source_of("--world-size", parallel.world)};
  if (given.given("local-world-size") && parallel.local_world > 0) {
    sizes.local = parallel.local_world;
    sizes.local_source = source_of("--local-world-size", parallel.local_world);
  }
  if (!command.plan.cluster.empty()) take_cluster(command, given, sizes);
  take_processes(command, sizes);
  if (sizes.world == 0) take_launcher(command.counts_servers, sizes);
  parallel.world = sizes.world;
  return sizes;
}

void take_data_ranks(PlanCommand& command, const Options& given, GivenWorld& world, Fixed& fixed) {
  const auto [data, source] = told_data_ranks(command, given);
  if (data == 0) return;
  const int64_t cut =
      int64_t{fixed.tensor.value_or(1)} * fixed.pipeline.value_or(1) * fixed.context.value_or(1);
  const int64_t ranks = data * cut;
  if (ranks > ParallelConfig::kMaxRanks)
    fail(ErrorKind::kUsage, source, " * ", cut, " ranks of a model are more than ",
         ParallelConfig::kMaxRanks);
  if (world.world > 0) {
    const bool all = fixed.tensor && fixed.pipeline && fixed.context;
    if (all ? ranks != world.world : world.world % ranks != 0)
      fail(ErrorKind::kUsage, source, " * ", cut, " ranks of a model are ", ranks,
           all ? ", not " : ", which does not divide ", world.world_source, "; leave one of them out");
    fixed.data = data;
    return;
  }
  world.world = command.parallel.world = static_cast<int>(ranks);
  world.world_source = source;
  fixed.tensor = fixed.tensor.value_or(1);
  fixed.pipeline = fixed.pipeline.value_or(1);
  fixed.context = fixed.context.value_or(1);
}

Machine machine_of(const PlanCommand& command, const GivenWorld& given) {
  AcceleratorList list = AcceleratorList::installed();
  for (const std::string& file : command.plan.gpu_files) list.add_file(file);
  Machine machine;
  const bool local = command.plan.gpu == "local";
  machine.device = local ? measure_this_machine() : list.find(command.plan.gpu);
  check_format(command, machine.device, list);
  const auto gb = command.plan.memory_gb ? command.plan.memory_gb : memory_from_environment();
  if (gb) machine.device.memory = *gb * 1e9;
  if (command.plan.network_gbps) machine.device.network_bandwidth = *command.plan.network_gbps * 1e9 / 8;
  machine.world = std::max(given.world, 1);
  int domain = std::min(machine.device.link_domain, machine.world);
  while (machine.world % domain != 0) --domain;  // machines of as many devices each
  const int ranks = given.local > 0 ? given.local : domain;
  if (ranks > machine.world || machine.world % ranks != 0)
    fail(ErrorKind::kUsage, given.world > 0 ? given.world_source : "a world of 1 device",
         " is not a multiple of ", given.local_source);
  if (command.plan.link_domain)
    machine.link_domain = *command.plan.link_domain;
  else if (!local && machine.device.link_domain > kLargestMachine)
    machine.link_domain = machine.device.link_domain;
  machine.shares_processor = local;
  machine.shares_memory = local && !gb;
  set_local_world(machine, ranks);
  return machine;
}

}  // namespace megalith
