#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libcore/options/fields.h"

namespace megalith {

/// What carries the messages between processes.
enum class Transport { kGloo, kNccl };
inline std::vector<EnumName<Transport>> enum_names(Transport) {
  return {{"gloo", Transport::kGloo}, {"nccl", Transport::kNccl}};
}

/// How ranks find each other if each is a process, and which ranks this command itself starts. This does not
/// affect what is computed, so it is not stored in the args of a checkpoint.
struct LaunchConfig {
  static constexpr int kMaxServers = 1 << 16;
  static constexpr int kMaxPort = 65535;
  std::optional<std::string> gpus = {};          // "4,5"
  std::optional<std::string> log_dir = {};       // derived: "log" with --gpus
  std::optional<int> servers = {}, server = {};  // --nnodes, --node-rank
  std::string hostfile = {};
  std::string address = {};      // --master-addr
  std::optional<int> port = {};  // --master-port
  std::optional<int> local_rank = {};
  std::string task_type = {};
  int restarts = 0;
  Transport transport = Transport::kNccl;  // NCCL is Megatron's default; without a GPU, Gloo replaces it

  template <class V>
  void fields(V&& v) {
    v("gpus", gpus,
      "Start one rank as a process for each of these devices, such as 4,5. With --device cuda the rank uses "
      "it; on the CPU the devices need not exist.",
      metavar("N,N"), alias({"devices"}));
    v("log-dir", log_dir,
      "Write the output of each started rank N to workerlog.N there; rank 0 also prints it.", metavar("DIR"),
      default_text("log with --gpus, else none"));
    v("nnodes", servers,
      "Servers of the run, each started by this command with its own --node-rank; the ranks of a server "
      "(--nproc or --gpus) are then processes.",
      between(1, kMaxServers), default_text("the hosts of --hostfile, else 1"));
    v("node-rank", server, "Which of the --nnodes servers this is, from 0.", between(0, kMaxServers),
      default_text("this machine's place in --hostfile, else 0"));
    v("hostfile", hostfile, "Servers of the run, one a line: a host, then slots=N, the number of its ranks.",
      metavar("FILE"));
    v("master-addr", address, "Host or address of rank 0.", metavar("HOST"),
      default_text("$MASTER_ADDR, else what the launcher says"));
    v("master-port", port, "Port on which rank 0 waits for the others.", between(1, kMaxPort),
      default_text("$MASTER_PORT, else from the job's number, else 29500"));
    v("restarts", restarts,
      "Start all ranks again when one fails, or is stopped for 5 seconds, at most N times: they resume from "
      "the newest checkpoint. For ranks that are processes (--gpus, --nnodes).",
      at_least(0));
    v("local-rank", local_rank, "This rank's place on its machine, as torch.distributed.launch gives it.",
      at_least(0), unlisted());
    v("task-type", task_type, "With llmacc.megatron.GPT, RANK and WORLD_SIZE count servers.", metavar("NAME"),
      one_of({"llmacc.megatron.GPT"}), unlisted());
    v("distributed-backend", transport,
      "The library that carries tensors between processes; nccl on a CPU means gloo, and gloo is refused "
      "with --device cuda.");
  }
  void finish() {
    if (gpus && !log_dir) log_dir = "log";  // the default of Paddle's launcher
  }
};

}  // namespace megalith
