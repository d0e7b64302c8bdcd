#pragma once

#include <filesystem>
#include <string>

namespace megalith {

/// What is known of NCCL before its first call, as lines of the log. Which of the machine's interfaces it
/// takes, and which transports, is known after the first step (nccl_connections.h).

/// " > NCCL 2.28.9; network interfaces here: eth0 192.0.2.1; InfiniBand: mlx5_0; …". `infiniband`: the folder
/// in which the system lists such devices.
std::string nccl_line(const std::string& version,
                      const std::filesystem::path& infiniband = "/sys/class/infiniband");
/// " > variables for NCCL: NCCL_ALGO=Ring; NCCL_ALGO may change the order of sums": those of this process,
/// with those that may change results named again, unless sums are in rank order. Those of keep_nccl_log()
/// are left out. Empty if there are none.
std::string nccl_variables_line(bool in_rank_order);

}  // namespace megalith
