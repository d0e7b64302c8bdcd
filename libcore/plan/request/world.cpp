#include "libcore/plan/request/world.h"

#include <algorithm>
#include <cstdlib>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/launch/environment.h"
#include "libcore/plan/request/cluster_file.h"

namespace megalith {
namespace {

std::string source_of(const char* option, int value) {
  return concat(option, ' ', value);
}

/// Takes the ranks of --nproc as the world if no world is given. Otherwise their number must equal that of
/// the world or of a machine.
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

/// Logs a hint if the command runs directly in an sbatch script: it is then one process, but the variables
/// count the tasks that srun would start.
void tell_of_batch_job(const Environment& environment) {
  const char* const tasks = environment("SLURM_NTASKS");
  if (!tasks || environment("SLURM_STEP_ID")) return;
  const char* const local = environment("SLURM_NTASKS_PER_NODE");
  log("SLURM_NTASKS=", tasks,
      " of the batch job is not used: srun starts its tasks, not this "
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

/// A size, and the option that gives it; 0: no option gives it.
struct ToldSize {
  int size = 0;
  std::string source = {};
};

ToldSize told_data_ranks(const PlanCommand& command) {
  const int data = command.gives("data-parallel-size") ? command.parallel.data : 0;
  const auto& [degree_option, degree] = command.data_ranks;
  const std::string of_data = source_of("--data-parallel-size", data);
  const std::string of_degree = source_of(degree_option, degree);
  if (data > 0 && degree > 0 && data != degree)
    fail(ErrorKind::kUsage, of_degree, " and ", of_data,
         " contradict each other: --sharding shards over all data-parallel ranks; leave one of them out");
  return data > 0 ? ToldSize{data, of_data} : ToldSize{degree, of_degree};
}

}  // namespace

GivenWorld take_world(PlanCommand& command) {
  ParallelConfig& parallel = command.parallel;
  GivenWorld sizes;
  if (command.gives("world-size") && parallel.world == 0)
    fail(ErrorKind::kUsage,
         "--world-size 0: wanted a number of devices from 1; leave it out for one device, or for those that "
         "the launcher or --cluster names");
  if (command.gives("world-size"))
    sizes = {.world = parallel.world, .world_source = source_of("--world-size", parallel.world)};
  if (command.gives("local-world-size") && parallel.local_world > 0) {
    sizes.local = parallel.local_world;
    sizes.local_source = source_of("--local-world-size", parallel.local_world);
  }
  if (!command.plan.cluster.empty()) take_cluster_file(command, sizes);
  take_processes(command, sizes);
  if (sizes.world == 0) take_launcher(command.counts_servers, sizes);
  parallel.world = sizes.world;
  return sizes;
}

void take_data_ranks(PlanRequest& request, GivenWorld& world) {
  Fixed& fixed = request.fixed;
  const auto [data, source] = told_data_ranks(request.command);
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
  world.world = request.command.parallel.world = static_cast<int>(ranks);
  world.world_source = source;
  fixed.tensor = fixed.tensor.value_or(1);
  fixed.pipeline = fixed.pipeline.value_or(1);
  fixed.context = fixed.context.value_or(1);
}

}  // namespace megalith
