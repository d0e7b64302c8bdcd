#pragma once

#include <memory>
#include <string>

#include "libcore/train/log/run_observer.h"

namespace megalith {

/// What NCCL's log says of the connections that this process has made, as a line:
/// " > NCCL's connections: 24 by P2P/CUMEM, 4 by NET/IB/0/GDRDMA; NET/IB : Using [0]mlx5_0:1/RoCE". A
/// connection is a channel in one direction, in the words with which NCCL names its transport
/// (src/transport/*.cc of 2.28.9: "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"); interfaces are those of the
/// networks that NCCL has found.
std::string nccl_connections_line(const std::string& log);

/// Logs that line after the first step, since NCCL connects ranks when a call first needs it, or at the end
/// of a run without steps. Null where NCCL's log is not kept (nccl_log.h).
std::unique_ptr<RunObserver> nccl_connections_log();

}  // namespace megalith
