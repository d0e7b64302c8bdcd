#pragma once

#include <functional>
#include <optional>
#include <string>

namespace megalith {

constexpr int kDefaultPort = 29500;  // torch's

/// Looks up an environment variable: null when it is not set.
using Environment = std::function<const char*(const char* name)>;

/// What a launcher told this process: it is one rank of several.
struct Launch {
  int rank = 0, world = 1;
  std::optional<int> local_rank = {}, local_world = {};  // unknown under some launchers
  std::string address = {};                              // host or address of rank 0
  int port = 0;               // where rank 0 listens, or the store of torchrun's agent
  std::string launcher = {};  // for messages: "torchrun", "mpirun"
  std::string token = {};     // of the job, so that a peer of another job is refused; may be empty
  bool agent_store = false;   // torchrun's agent listens on `port`, and its store holds rank 0's address
  std::string attempt = {};  // torchrun's count of restarts, because its store keeps the keys of earlier ones
};

/// What PAI's DLC says: this process is one of several servers and starts the ranks of its own.
struct ServerLaunch {
  int server = 0, servers = 1;
  int local_world = 1;  // ranks of each server
  std::string address = {};
  int port = 0;
};

/// What the command line adds to the environment.
struct LaunchHints {
  std::string address = {};  // empty, or in place of MASTER_ADDR
  std::optional<int> port = {};
  std::optional<int> local_rank = {};
};

/// The launcher that started this process, or nothing. Precedence: RANK + WORLD_SIZE (torchrun, plain
/// environment), OMPI_COMM_WORLD_*, PMI_*, SLURM_* (only within a step), PADDLE_*, RANK_ID + RANK_SIZE or
/// RANK_TABLE_FILE. kUsage with the variable's name when one holds no number, when they contradict each
/// other, when one of a pair is missing, or when no address of rank 0 is known; kNoInput and kData for a rank
/// table that cannot be read.
std::optional<Launch> read_launch(const Environment&, const LaunchHints& = {});

/// RANK and WORLD_SIZE as counts of servers (--task-type llmacc.*), LOCAL_WORLD_SIZE ranks (4) on each.
/// Nothing when they are not set, or when LOCAL_RANK or TORCHELASTIC_RUN_ID show that they count ranks.
std::optional<ServerLaunch> read_server_launch(const Environment&, const LaunchHints& = {});

/// How large a launcher's world is; 0: not told. `…_source` names the variable and its value.
struct LaunchSizes {
  int world = 0, local_world = 0;
  std::string world_source = {}, local_source = {};
};

/// The sizes alone, of the first launcher in read_launch()'s order that says its world's, which rank this is
/// or not. `servers`: WORLD_SIZE counts them where read_server_launch() would say so. kUsage when one holds
/// no number.
LaunchSizes read_launch_sizes(const Environment&, bool servers);

/// $MEGALITH_JOB_TOKEN, else TORCHELASTIC_RUN_ID, else SLURM_JOB_ID, else empty.
std::string job_token(const Environment&);

/// Whether another process reads the same command line and speaks for this one, by the environment alone: of
/// ranks the first, of those that our own programs start on a server the one that starts them. No complaint
/// about an environment that contradicts itself.
bool another_speaks(const Environment&);

}  // namespace megalith
