#include "libcore/launch/launch_plan.h"

#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/config/parallel_config.h"
#include "libcore/hash/hmac.h"
#include "libcore/launch/hostfile.h"

namespace megalith {
namespace {

/// The first given option that says how to start ranks, with its value; empty if none was given.
std::string starting_options(const LaunchConfig& config) {
  if (config.gpus) return "--gpus " + *config.gpus;
  if (config.servers) return concat("--nnodes ", *config.servers);
  if (config.server) return concat("--node-rank ", *config.server);
  if (!config.hostfile.empty()) return "--hostfile " + config.hostfile;
  return {};
}

void refuse_beside(const std::string& launcher, const std::string& option) {
  fail(ErrorKind::kUsage, option, " and ", launcher,
       " contradict each other: the ranks have been started already; leave one of them out");
}

std::vector<std::string> devices_of(const LaunchConfig& config) {
  std::vector<std::string> devices;
  if (!config.gpus) return devices;
  for (const std::string& part : split(*config.gpus, ',')) {
    const auto id = parse_int(trim(part));
    if (!id || *id < 0)
      fail(ErrorKind::kUsage, "--gpus ", quote(*config.gpus), ": ", quote(part),
           " is not a device number; wanted a list such as 4,5");
    devices.push_back(std::to_string(*id));
    for (size_t i = 0; i + 1 < devices.size(); ++i)
      if (devices[i] == devices.back())
        fail(ErrorKind::kUsage, "--gpus ", quote(*config.gpus), ": ", devices.back(), " appears twice");
  }
  return devices;
}

std::string random_token() {
  std::string token;
  for (const char byte : random_bytes(16)) append_hex(token, static_cast<unsigned char>(byte), 2);
  return token;
}

/// The servers of the run, and the place of this one among them.
struct Servers {
  std::vector<HostfileEntry> hosts = {};  // one for each server; without a file the names are empty
  int here = 0;
};

Servers servers_of(const LaunchConfig& config, Deadline deadline) {
  Servers servers;
  if (!config.hostfile.empty()) {
    servers.hosts = read_hostfile(config.hostfile);
    if (config.servers && static_cast<size_t>(*config.servers) != servers.hosts.size())
      fail(ErrorKind::kUsage, "--nnodes ", *config.servers, " and the ", servers.hosts.size(), " hosts of ",
           config.hostfile, " contradict each other");
    servers.here =
        config.server ? *config.server : place_of_this_machine(servers.hosts, config.hostfile, deadline);
  } else {
    servers.hosts.resize(static_cast<size_t>(config.servers.value_or(1)));
    servers.here = config.server.value_or(0);
    if (servers.hosts.size() > 1 && !config.server)
      fail(ErrorKind::kUsage, "--nnodes ", servers.hosts.size(), " needs --node-rank, this server's number");
  }
  if (static_cast<size_t>(servers.here) >= servers.hosts.size())
    fail(ErrorKind::kUsage, "--node-rank ", servers.here, ": there are ", servers.hosts.size(),
         " servers; wanted 0 to ", servers.hosts.size() - 1);
  return servers;
}

void count_ranks(ServerRanks& ranks, const Servers& servers, const std::string& hostfile, int given) {
  ranks.world = 0;
  for (size_t i = 0; i < servers.hosts.size(); ++i) {
    const int slots = servers.hosts[i].slots;
    if (given > 0 && slots > 0 && slots != given && i == static_cast<size_t>(servers.here))
      fail(ErrorKind::kUsage, hostfile, ':', servers.hosts[i].line, ": gives ",
           quote_name(servers.hosts[i].host), ' ', slots, " ranks, the command line ", given,
           "; leave one of them out");
    const int count = slots > 0 ? slots : given > 0 ? given : 1;
    if (i == static_cast<size_t>(servers.here)) {
      ranks.first = ranks.world;
      ranks.count = count;
    }
    ranks.world += count;
    if (ranks.world > ParallelConfig::kMaxRanks)
      fail(ErrorKind::kUsage, hostfile.empty() ? "--nnodes" : concat(hostfile, ':', servers.hosts[i].line),
           ": more ranks than ", ParallelConfig::kMaxRanks);
  }
}

void find_address(ServerRanks& ranks, const LaunchConfig& config, const Servers& servers,
                  const Environment& environment) {
  const char* const address = environment("MASTER_ADDR");
  const bool alone = servers.hosts.size() == 1;
  if (!config.address.empty())
    ranks.address = config.address;
  else if (address && *address)
    ranks.address = address;
  else
    ranks.address = alone ? "127.0.0.1" : servers.hosts.front().host;
  if (ranks.address.empty())
    fail(ErrorKind::kUsage, "--nnodes ", servers.hosts.size(),
         " needs --master-addr, the first server's host, the same on all servers");
  const char* const text = environment("MASTER_PORT");
  const auto port = text ? parse_int(text) : std::nullopt;
  if (text && !config.port && (!port || *port < 1 || *port > LaunchConfig::kMaxPort))
    fail(ErrorKind::kUsage, "MASTER_PORT=", quote_name(text), " in the environment: wanted a port");
  if (config.port || port)
    ranks.port = config.port ? *config.port : static_cast<int>(*port);
  else
    ranks.port = alone ? free_port(ranks.address) : kDefaultPort;
  ranks.any_port = alone && !config.port && !port;
}

/// What to say if --gpus is a single number above 1, which may be meant as a count, as other launchers take
/// it; empty for other lists.
std::string one_device_notice(const std::vector<std::string>& devices) {
  if (devices.size() != 1) return {};
  const int64_t count = *parse_int(devices.front());
  if (count < 2) return {};
  const char* const between = count == 2 ? "," : count == 3 ? ",1," : ",1,…,";
  return concat("--gpus ", count, ": device ", count, ", one rank; ", count, " ranks: --gpus 0", between,
                count - 1);
}

int given_ranks(const LaunchConfig& config, int nproc, const std::vector<std::string>& devices) {
  nproc = ParallelConfig::ranks_of(nproc);
  if (config.gpus && nproc > 0 && static_cast<size_t>(nproc) != devices.size())
    fail(ErrorKind::kUsage, "--nproc ", nproc, " and --gpus ", *config.gpus, " contradict each other");
  return config.gpus ? static_cast<int>(devices.size()) : nproc;
}

ServerRanks own_ranks(const LaunchConfig& config, int nproc, const Environment& environment,
                      Deadline deadline) {
  ServerRanks ranks{.devices = devices_of(config)};
  if (const std::string notice = one_device_notice(ranks.devices); !notice.empty()) log(notice);
  const Servers servers = servers_of(config, deadline);
  count_ranks(ranks, servers, config.hostfile, given_ranks(config, nproc, ranks.devices));
  find_address(ranks, config, servers, environment);
  if (servers.hosts.size() == 1 && job_token(environment).empty()) ranks.token = random_token();
  return ranks;
}

/// The ranks of one of DLC's servers. --nproc or --gpus gives their number instead of LOCAL_WORLD_SIZE.
ServerRanks dlc_ranks(const LaunchConfig& config, int nproc, const ServerLaunch& launch) {
  ServerRanks ranks{.address = launch.address, .port = launch.port, .devices = devices_of(config)};
  const int given = given_ranks(config, nproc, ranks.devices);
  ranks.count = given > 0 ? given : launch.local_world;
  ranks.first = launch.server * ranks.count;
  ranks.world = launch.servers * ranks.count;
  return ranks;
}

/// For a run without a launcher: refuses options that have a meaning only with one.
void refuse_orphans(const LaunchConfig& config) {
  const auto refuse = [](const std::string& option) {
    fail(ErrorKind::kUsage, option,
         " without a launcher has no effect on the ranks of one process; give --nnodes too, or leave it out");
  };
  if (config.server) refuse(concat("--node-rank ", *config.server));
  if (!config.address.empty()) refuse("--master-addr " + config.address);
  if (config.port) refuse(concat("--master-port ", *config.port));
}

/// How ranks are started again that others start.
const char* way_to_restart(const std::string& launcher) {
  if (launcher == "torchrun") return "give torchrun --max-restarts";
  if (launcher == "Paddle's launcher") return "give Paddle's launcher --max_restart";
  if (launcher == "srun") return "have the job's script run srun again, or requeue the job";
  if (launcher == "mpirun") return "have a script run mpirun again";
  return "have what starts the ranks start all of them again";
}

/// Refuses --restarts where this process does not start the others; `launcher`: what did, empty: they are
/// threads.
void refuse_restarts(int restarts, const std::string& launcher) {
  if (restarts == 0) return;
  if (launcher.empty())
    fail(ErrorKind::kUsage, "--restarts ", restarts,
         " is for ranks that are processes; give --gpus or --nnodes, or leave it out");
  fail(ErrorKind::kUsage, "--restarts ", restarts, " and ", launcher,
       " contradict each other: the ranks have been started already; leave it out, and ",
       way_to_restart(launcher));
}

}  // namespace

LaunchPlan plan_launch(const LaunchConfig& config, int nproc, const Environment& environment,
                       Deadline deadline) {
  const LaunchHints hints{.address = config.address, .port = config.port, .local_rank = config.local_rank};
  const bool started_here = environment(kStartedHere) != nullptr;
  if (!started_here && config.task_type.starts_with("llmacc.")) {
    if (const auto servers = read_server_launch(environment, hints))
      return {.server = dlc_ranks(config, nproc, *servers)};
  }
  if (auto launch = read_launch(environment, started_here ? LaunchHints{} : hints)) {
    if (started_here) launch->launcher = "this program";
    const std::string given = nproc != 0 ? concat("--nproc ", nproc) : starting_options(config);
    if (!started_here) refuse_restarts(config.restarts, launch->launcher);
    if (!started_here && launch->world == 1 && nproc != 0 && starting_options(config).empty()) return {};
    if (!started_here && !given.empty()) refuse_beside(launch->launcher, given);
    return {.rank = std::move(launch)};
  }
  if (config.gpus || config.servers || !config.hostfile.empty())
    return {.server = own_ranks(config, nproc, environment, deadline)};
  refuse_orphans(config);
  refuse_restarts(config.restarts, {});
  return {};
}

}  // namespace megalith
