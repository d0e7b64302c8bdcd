#pragma once

#include <functional>
#include <optional>
#include <string>

namespace megalith {

constexpr int kDefaultPort = 29500;  // PyTorch's default

/// Looks up an environment variable; null if it is not set.
using Environment = std::function<const char*(const char* name)>;

/// What a launcher told this process: it is one of several ranks.
struct Launch {
  int rank = 0, world = 1;
  std::optional<int> local_rank = {}, local_world = {};  // unknown under some launchers
  std::string address = {};                              // host or address of rank 0
  int port = 0;               // of rank 0 or, under torchrun, of the agent with the store
  std::string launcher = {};  // for messages: "torchrun", "mpirun"
  std::string token = {};  // the job's secret, which ranks prove to each other that they have; may be empty
  // The launcher's name of the job, which tells jobs apart if there is no token; may be empty.
  std::string job = {};
  bool agent_store = false;  // torchrun's agent listens on `port`, and its store holds rank 0's address
  std::string attempt = {};  // torchrun's count of restarts; its store keeps the keys of earlier attempts
};

/// What the job service DLC of Alibaba's PAI told this process: it is one of several servers and starts its
/// own ranks.
struct ServerLaunch {
  int server = 0, servers = 1;
  int local_world = 1;  // ranks of each server
  std::string address = {};
  int port = 0;
};

/// What the command line adds to the environment.
struct LaunchHints {
  std::string address = {};  // if not empty, replaces MASTER_ADDR
  std::optional<int> port = {};
  std::optional<int> local_rank = {};
};

/// Reads the variables of the launcher that started this process; nothing if there is none. Precedence: RANK
/// + WORLD_SIZE (torchrun, plain environment), OMPI_COMM_WORLD_*, PMI_*, SLURM_* (only within a step),
/// PADDLE_*, RANK_ID + RANK_SIZE or RANK_TABLE_FILE. kUsage, with the variable's name, if one is not a
/// number, if they contradict each other, if one of a pair is missing, or if the address of rank 0 is
/// unknown; kNoInput and kData for a rank table that cannot be read.
std::optional<Launch> read_launch(const Environment&, const LaunchHints& = {});

/// Reads RANK and WORLD_SIZE as numbers of servers (--task-type llmacc.*), each with LOCAL_WORLD_SIZE ranks
/// (default: 4). Nothing if they are not set, or if LOCAL_RANK or TORCHELASTIC_RUN_ID show that they count
/// ranks.
std::optional<ServerLaunch> read_server_launch(const Environment&, const LaunchHints& = {});

/// How many ranks a launcher started, in all and on this machine; 0 if unknown. `…_source` names the variable
/// and its value.
struct LaunchSizes {
  int world = 0, local_world = 0;
  std::string world_source = {}, local_source = {};
};

/// Reads only the sizes, from the first launcher in read_launch()'s order that gives a world size, whether or
/// not it gives a rank. With `servers`, WORLD_SIZE counts servers in the cases in which read_server_launch()
/// would read it that way. kUsage if a size is not a number.
LaunchSizes read_launch_sizes(const Environment&, bool servers);

/// Refuses, with kUsage and their names, variables by which a launcher started several processes. `program`
/// is the name of one that is no rank: all of them would do the same work. What only numbers a process, and
/// counts none, says nothing here.
void require_one_process(const Environment&, const std::string& program);

/// $MEGALITH_JOB_TOKEN, a secret of the job's ranks; empty if it is not set.
std::string job_token(const Environment&);
/// The launcher's name of the job, which is no secret: TORCHELASTIC_RUN_ID, else SLURM_JOB_ID, else empty.
std::string job_name(const Environment&);

/// Whether another process reads the same command line and reports for this one, judged by the environment
/// alone. The first rank reports for all ranks; where one of our programs started the ranks of a server, that
/// program reports for them. Contradictions in the environment are not reported.
bool another_speaks(const Environment&);

}  // namespace megalith
