#include "libcore/launch/environment.h"

#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/config/parallel_config.h"
#include "libcore/launch/rank_table.h"
#include "libcore/launch/server_ranks.h"

namespace megalith {
namespace {

constexpr int kServerRanks = 4;  // ranks on each of DLC's servers if LOCAL_WORLD_SIZE is not set

/// The variables with which one kind of launcher numbers its ranks.
struct Family {
  const char* launcher;
  const char *rank, *world, *local_rank, *local_world;  // names of variables; null if there is none
  const char* only_with = nullptr;                      // the others count only if this variable is set
};
constexpr Family kRank = {"the environment", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Family kOpenMpi = {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Family kPmi = {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
// Outside a step, Slurm's variables describe the batch script, which runs only once, so they do not count
// ranks.
constexpr Family kSlurm = {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, "SLURM_STEP_ID"};
constexpr Family kPaddle = {"Paddle's launcher", "PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM",
                            "PADDLE_RANK_IN_NODE", "PADDLE_LOCAL_SIZE"};
constexpr Family kAscend = {"the rank table", "RANK_ID", "RANK_SIZE", nullptr, nullptr};
constexpr const Family* kFamilies[] = {&kRank,  &kOpenMpi, &kPmi,
                                       &kSlurm, &kPaddle,  &kAscend};  // by precedence

/// A variable that a launcher sets beside, or instead of, the variables of its family, and that no run needs.
struct Beside {
  const char* name;
  const char* missing;  // the variable that must be set, too
  int alone;            // the largest value that a run of one process can have
  const char* only_with = nullptr;
};
constexpr int kRankAlone = 0, kWorldAlone = 1;
constexpr Beside kBeside[] = {
    {"GROUP_RANK", kRank.rank, kRankAlone},
    {"GROUP_WORLD_SIZE", kRank.rank, kWorldAlone},
    {"ROLE_RANK", kRank.rank, kRankAlone},
    {"ROLE_WORLD_SIZE", kRank.rank, kWorldAlone},
    {"OMPI_COMM_WORLD_NODE_RANK", kOpenMpi.rank, kRankAlone},
    {"PMIX_RANK", kPmi.rank, kRankAlone},
    {"MV2_COMM_WORLD_RANK", kPmi.rank, kRankAlone},
    {"MV2_COMM_WORLD_SIZE", kPmi.rank, kWorldAlone},
    {"SLURM_STEP_NUM_TASKS", kSlurm.rank, kWorldAlone},
    {"SLURM_NPROCS", kSlurm.rank, kWorldAlone, kSlurm.only_with},  // in a batch script, it is the job's value
    {"SLURM_NODEID", kSlurm.rank, kRankAlone},
    {"PADDLE_GLOBAL_RANK", kPaddle.rank, kRankAlone},
    {"PADDLE_GLOBAL_SIZE", kPaddle.rank, kWorldAlone},
    {"PADDLE_LOCAL_RANK", kPaddle.rank, kRankAlone},
    {"PADDLE_NNODES", kPaddle.rank, kWorldAlone},
    {"MS_NODE_ID", kAscend.rank, kRankAlone},
    {"MS_WORKER_NUM", kAscend.rank, kWorldAlone},
};

class Reader {
 public:
  Reader(const Environment& environment, const LaunchHints& hints)
      : environment_(environment), hints_(hints) {}

  std::string text(const char* name) const {
    const char* const value = name ? environment_(name) : nullptr;
    return value ? value : "";
  }

  /// The variable's number, from min_value to max_value; nothing if it is not set; kUsage for any other
  /// value.
  std::optional<int> number(const char* name, int min_value, int max_value) const {
    const char* const value = name ? environment_(name) : nullptr;
    if (!value) return std::nullopt;
    const auto number = parse_int(value);
    if (!number || *number < min_value || *number > max_value)
      fail(ErrorKind::kUsage, name, '=', quote_name(value),
           " in the environment: wanted a number of at least ", min_value,
           max_value < std::numeric_limits<int>::max() ? concat(" and at most ", max_value) : std::string(),
           "; unset it to run without a launcher");
    return static_cast<int>(*number);
  }

  /// Rank and sizes from the variables of `family`, checked against each other; nothing if they are not set.
  std::optional<Launch> ranks(const Family& family) const {
    constexpr int kMax = std::numeric_limits<int>::max();
    if (family.only_with && text(family.only_with).empty()) return std::nullopt;
    const auto rank = number(family.rank, 0, kMax), world = number(family.world, 1, kMax);
    if (!rank && !world) return std::nullopt;
    if (!rank || !world)
      fail(ErrorKind::kUsage, rank ? family.rank : family.world, '=', rank ? *rank : *world,
           " is in the environment, but ", rank ? family.world : family.rank,
           " is not; give both or neither");
    Launch launch{.rank = *rank,
                  .world = *world,
                  .local_rank = number(family.local_rank, 0, kMax),
                  .local_world = number(family.local_world, 1, kMax),
                  .launcher = family.launcher};
    check(family, launch);
    return launch;
  }

  void take_hints(const Family& family, Launch& launch) const {
    if (hints_.local_rank && launch.local_rank && *hints_.local_rank != *launch.local_rank)
      fail(ErrorKind::kUsage, "--local-rank ", *hints_.local_rank, " and ", family.local_rank, '=',
           *launch.local_rank, " in the environment contradict each other");
    if (hints_.local_rank) launch.local_rank = hints_.local_rank;
    launch.token = job_token(environment_);
    if (launch.token.empty()) launch.job = job_name(environment_);
  }

  std::string address() const { return hints_.address.empty() ? text("MASTER_ADDR") : hints_.address; }

  std::optional<int> port() const {
    const auto given = number("MASTER_PORT", 1, 65535);
    return hints_.port ? hints_.port : given;
  }

 private:
  static void check(const Family& family, const Launch& launch) {
    const auto contradict = [](const char* low, int a, const char* high, int b) {
      fail(ErrorKind::kUsage, low, '=', a, " and ", high, '=', b,
           " in the environment contradict each other");
    };
    if (launch.rank >= launch.world) contradict(family.rank, launch.rank, family.world, launch.world);
    if (launch.local_world && *launch.local_world > launch.world)
      contradict(family.local_world, *launch.local_world, family.world, launch.world);
    const char* const among = launch.local_world ? family.local_world : family.world;
    const int size = launch.local_world.value_or(launch.world);
    if (launch.local_rank && *launch.local_rank >= size)
      contradict(family.local_rank, *launch.local_rank, among, size);
  }

  const Environment& environment_;
  const LaunchHints& hints_;
};

struct Endpoint {
  std::string host;
  int port;
};

Endpoint parse_endpoint(const char* variable, std::string text) {
  if (const size_t scheme = text.find("://"); scheme != std::string::npos) text.erase(0, scheme + 3);
  const size_t colon = text.rfind(':');
  const auto port = colon == std::string::npos ? std::nullopt : parse_int(text.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535 || colon == 0)
    fail(ErrorKind::kUsage, variable, '=', quote_name(text), " in the environment: wanted HOST:PORT");
  return {text.substr(0, colon), static_cast<int>(*port)};
}

/// Where rank 0 listens: PADDLE_MASTER or, if that is not set, the first of PADDLE_TRAINER_ENDPOINTS.
std::optional<Endpoint> paddle_endpoint(const Reader& read, const Launch& launch) {
  const std::string list = read.text("PADDLE_TRAINER_ENDPOINTS");
  const auto endpoints = split(list, ',');
  if (!list.empty() && endpoints.size() != static_cast<size_t>(launch.world))
    fail(ErrorKind::kUsage, "PADDLE_TRAINERS_NUM=", launch.world, " and the ", endpoints.size(),
         " of PADDLE_TRAINER_ENDPOINTS=", quote_name(list), " in the environment contradict each other");
  if (const std::string master = read.text("PADDLE_MASTER"); !master.empty())
    return parse_endpoint("PADDLE_MASTER", master);
  if (list.empty()) return std::nullopt;
  return parse_endpoint("PADDLE_TRAINER_ENDPOINTS", endpoints.front());
}

/// A text that is the same for all ranks of a job and different for other jobs, so that the ranks agree on a
/// port. Empty if nothing suitable is known.
std::string job_of(const Reader& read, const Family& family) {
  const auto joined = [&](std::initializer_list<const char*> names) {
    std::string job;
    for (const char* name : names)
      if (const std::string part = read.text(name); !part.empty()) job += concat(name, '=', part, ' ');
    return job;
  };
  if (&family == &kOpenMpi) return joined({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
  if (&family == &kPmi) return joined({"PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID"});
  if (&family == &kSlurm) return joined({"SLURM_JOB_ID", "SLURM_STEP_ID"});
  return {};
}

/// The address of rank 0 according to the launcher's own variables; nothing if they do not tell it.
std::optional<Endpoint> own_endpoint(const Reader& read, const Family& family, const Launch& launch) {
  const std::string job = job_of(read, family);
  const int port = job.empty() ? kDefaultPort : port_of_job(job);
  if (&family == &kPaddle)
    if (auto endpoint = paddle_endpoint(read, launch)) return endpoint;
  if (&family == &kSlurm)
    if (const std::string host = read.text("SLURM_LAUNCH_NODE_IPADDR"); !host.empty())
      return Endpoint{host, port};
  if (launch.world == 1 || launch.local_world == launch.world) return Endpoint{"127.0.0.1", port};
  return std::nullopt;
}

void find_address(const Reader& read, const Family& family, Launch& launch) {
  const auto own = own_endpoint(read, family, launch);
  launch.address = read.address();
  if (launch.address.empty() && own) launch.address = own->host;
  if (launch.address.empty())
    fail(ErrorKind::kUsage, family.world, '=', launch.world,
         " in the environment, but the host of rank 0 is not "
         "known; set MASTER_ADDR, or give --master-addr");
  launch.port = read.port().value_or(own ? own->port : kDefaultPort);
}

void take_torchrun(const Reader& read, Launch& launch) {
  if (read.text("TORCHELASTIC_RUN_ID").empty()) return;
  launch.launcher = "torchrun";
  launch.agent_store = read.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  launch.attempt = read.text("TORCHELASTIC_RESTART_COUNT");
  if (launch.agent_store && (read.address().empty() || !read.port()))
    fail(ErrorKind::kUsage,
         "TORCHELASTIC_USE_AGENT_STORE=True in the environment without MASTER_ADDR and "
         "MASTER_PORT; start with torchrun --no-python");
}

/// The launch of an Ascend rank: from RANK_ID and the rank table or, without a table, from RANK_ID and
/// RANK_SIZE.
std::optional<Launch> ascend_launch(const Reader& read) {
  const std::string path = read.text("RANK_TABLE_FILE");
  if (path.empty()) {
    auto launch = read.ranks(kAscend);
    if (launch) find_address(read, kAscend, *launch);
    return launch;
  }
  const auto rank = read.number("RANK_ID", 0, std::numeric_limits<int>::max());
  const RankTable table = read_rank_table(path, rank.value_or(0));
  if (!rank && table.world == 1) return std::nullopt;
  if (!rank)
    fail(ErrorKind::kUsage, "RANK_TABLE_FILE=", quote_name(path), " in the environment holds ", table.world,
         " ranks, but there is no RANK_ID; give it, or unset both");
  const auto world = read.number("RANK_SIZE", 1, std::numeric_limits<int>::max());
  if (world && *world != table.world)
    fail(ErrorKind::kUsage, "RANK_SIZE=", *world, " in the environment and the ", table.world, " ranks of ",
         path, " contradict each other");
  return Launch{.rank = *rank,
                .world = table.world,
                .local_rank = table.local_rank,
                .local_world = table.local_world,
                .address = read.address().empty() ? table.first_server : read.address(),
                .port = read.port().value_or(table.port),
                .launcher = kAscend.launcher};
}

/// Whether torchrun started this process. If so, RANK and WORLD_SIZE count ranks, even on a server of DLC.
bool started_by_torchrun(const Reader& read) {
  return !read.text("LOCAL_RANK").empty() || !read.text("TORCHELASTIC_RUN_ID").empty();
}

LaunchSizes sizes_of(const Reader& read, const Family& family) {
  constexpr int kMost = ParallelConfig::kMaxRanks;
  if (family.only_with && read.text(family.only_with).empty()) return {};
  const std::string path = &family == &kAscend ? read.text("RANK_TABLE_FILE") : "";
  if (!path.empty()) {
    const RankTable table = read_rank_table(path, 0);
    const std::string source = "RANK_TABLE_FILE=" + quote_name(path);
    return {table.world, table.local_world, source, source};
  }
  const auto world = read.number(family.world, 1, kMost), local = read.number(family.local_world, 1, kMost);
  if (!world) return {};
  return {*world, local.value_or(0), concat(family.world, '=', *world),
          local ? concat(family.local_world, '=', *local) : std::string()};
}

/// Turns sizes that count servers into sizes that count ranks.
void count_server_ranks(LaunchSizes& sizes) {
  if (sizes.local_world == 0) {
    sizes.local_world = kServerRanks;
    sizes.local_source = concat("a server's ", kServerRanks, " ranks");
  }
  const int64_t ranks = int64_t{sizes.world} * sizes.local_world;
  if (ranks > ParallelConfig::kMaxRanks)
    fail(ErrorKind::kUsage, sizes.world_source, " servers of ", sizes.local_world,
         " ranks in the environment: ", "wanted no more than ", ParallelConfig::kMaxRanks, " ranks");
  sizes.world = static_cast<int>(ranks);
  sizes.world_source += " servers";
}

std::optional<int> world_of(const Reader& read, const Family& family) {
  const std::string table = &family == &kAscend ? read.text("RANK_TABLE_FILE") : "";
  if (!table.empty()) return read_rank_table(table, 0).world;
  const auto launch = read.ranks(family);
  return launch ? std::optional(launch->world) : std::nullopt;
}

/// Refuses a world that is smaller than the world of another launcher in the environment: the processes of
/// that launcher would not train together.
void require_no_more(const Reader& read, const Family& chosen, int world) {
  for (const Family* family : kFamilies)
    if (const auto other = world_of(read, *family); other > world)
      fail(ErrorKind::kUsage, chosen.world, '=', world, " and ", family->world, '=', *other,
           " in the environment contradict each other; unset those of the launcher that is not used");
}

/// The launch that the variables of `family` describe, without the hints of the command line that
/// take_hints() adds.
std::optional<Launch> launch_of(const Reader& read, const Family& family) {
  if (&family == &kAscend) return ascend_launch(read);
  auto launch = read.ranks(family);
  if (!launch) return launch;
  if (&family == &kRank) take_torchrun(read, *launch);
  find_address(read, family, *launch);
  return launch;
}

[[noreturn]] void refuse_alone(const std::string& variable, const std::string& missing) {
  fail(ErrorKind::kUsage, variable, " in the environment implies several ranks, but ", missing,
       " is not set; set it too, or unset the first");
}

/// Refuses an environment that has other variables of a launcher, but not its rank and size. Processes that
/// ignored them would each train alone. LOCAL_WORLD_SIZE by itself only asks for a number of ranks: DLC's
/// commands set it.
void refuse_leftovers(const Reader& read) {
  constexpr int kMax = std::numeric_limits<int>::max();
  for (const Family* family : kFamilies) {
    const auto local_rank = read.number(family->local_rank, 0, kMax);
    if (local_rank.value_or(0) > 0) refuse_alone(concat(family->local_rank, '=', *local_rank), family->rank);
    const auto local_world = family == &kRank ? std::nullopt : read.number(family->local_world, 1, kMax);
    if (local_world.value_or(1) > 1)
      refuse_alone(concat(family->local_world, '=', *local_world), family->rank);
  }
  // Slurm's batch script is process 0.
  const auto task = read.number(kSlurm.rank, 0, kMax);
  if (task.value_or(0) > 0) refuse_alone(concat(kSlurm.rank, '=', *task), kSlurm.only_with);
  for (const Beside& beside : kBeside) {
    if (beside.only_with && read.text(beside.only_with).empty()) continue;
    const auto value = read.number(beside.name, 0, kMax);
    if (value.value_or(0) > beside.alone) refuse_alone(concat(beside.name, '=', *value), beside.missing);
  }
  const std::string endpoints = read.text("PADDLE_TRAINER_ENDPOINTS");
  if (split(endpoints, ',').size() > 1)
    refuse_alone(concat("PADDLE_TRAINER_ENDPOINTS=", quote_name(endpoints)), kPaddle.rank);
}

/// "WORLD_SIZE=2", for each variable that counts several processes.
std::vector<std::string> counts_of_several(const Reader& read) {
  std::vector<std::string> several;
  for (const Family* family : kFamilies)
    if (const LaunchSizes sizes = sizes_of(read, *family); sizes.world > kWorldAlone)
      several.push_back(sizes.world_source);
  for (const Beside& beside : kBeside) {
    const bool counts = !beside.only_with || !read.text(beside.only_with).empty();
    if (!counts || beside.alone != kWorldAlone) continue;
    const auto value = read.number(beside.name, 0, std::numeric_limits<int>::max());
    if (value.value_or(0) > kWorldAlone) several.push_back(concat(beside.name, '=', *value));
  }
  return several;
}

}  // namespace

std::string job_token(const Environment& environment) {
  const char* const token = environment("MEGALITH_JOB_TOKEN");
  return token ? token : "";
}

std::string job_name(const Environment& environment) {
  for (const char* name : {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"})
    if (const char* const value = environment(name); value && *value) return value;
  return {};
}

std::optional<Launch> read_launch(const Environment& environment, const LaunchHints& hints) {
  const Reader read(environment, hints);
  for (const Family* family : kFamilies)
    if (auto launch = launch_of(read, *family)) {
      require_no_more(read, *family, launch->world);
      read.take_hints(*family, *launch);
      return launch;
    }
  refuse_leftovers(read);
  return std::nullopt;
}

LaunchSizes read_launch_sizes(const Environment& environment, bool servers) {
  const LaunchHints none;
  const Reader read(environment, none);
  for (const Family* family : kFamilies) {
    LaunchSizes sizes = sizes_of(read, *family);
    if (sizes.world == 0) continue;
    if (servers && family == &kRank && !started_by_torchrun(read)) count_server_ranks(sizes);
    return sizes;
  }
  return {};
}

std::optional<ServerLaunch> read_server_launch(const Environment& environment, const LaunchHints& hints) {
  const Reader read(environment, hints);
  if (started_by_torchrun(read)) return std::nullopt;
  // RANK and WORLD_SIZE count servers here and are checked against each other. LOCAL_WORLD_SIZE counts ranks
  // and is not part of that check.
  constexpr Family kServers = {"DLC", "RANK", "WORLD_SIZE", nullptr, nullptr};
  const auto servers = read.ranks(kServers);
  if (!servers) return std::nullopt;
  ServerLaunch launch{.server = servers->rank,
                      .servers = servers->world,
                      .local_world = read.number("LOCAL_WORLD_SIZE", 1, 1024).value_or(kServerRanks),
                      .address = read.address(),
                      .port = read.port().value_or(kDefaultPort)};
  if (launch.address.empty() && launch.servers > 1)
    fail(ErrorKind::kUsage, "WORLD_SIZE=", launch.servers,
         " servers in the environment, but the host of the first "
         "one is not known; set MASTER_ADDR, or give --master-addr");
  if (launch.address.empty()) launch.address = "127.0.0.1";
  return launch;
}

void require_one_process(const Environment& environment, const std::string& program) {
  const LaunchHints none;
  const auto several = counts_of_several(Reader(environment, none));
  if (several.empty()) return;
  std::vector<std::string> names;
  for (const std::string& variable : several) names.push_back(variable.substr(0, variable.find('=')));
  fail(ErrorKind::kUsage, join(several, ", "), " in the environment: ", program,
       " is one process, and each would do the same work; start it once, without the launcher, or unset ",
       join(names, ", "));
}

bool another_speaks(const Environment& environment) {
  if (environment(kStartedHere)) return true;
  const Reader read(environment, {});
  for (const Family* family : kFamilies) {
    const bool counts = !family->only_with || !read.text(family->only_with).empty();
    const std::string rank = counts ? read.text(family->rank) : std::string();
    if (!rank.empty()) return parse_int(rank).value_or(0) > 0;
  }
  return false;
}

}  // namespace megalith
