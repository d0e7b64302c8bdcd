#pragma once

namespace megalith::emulator {

/// What NCCL says in its log when a rank has connected to a peer, in the words of a transport over shared
/// memory: "HOST:PID:TID [DEVICE] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct". Written if
/// NCCL_DEBUG is INFO, to the file NCCL_DEBUG_FILE, which is opened once and loses what it held.
/// `connection`: 0 for collective calls, 1 for messages.
void log_connection(int connection, int rank, int device, int peer);

}  // namespace megalith::emulator
