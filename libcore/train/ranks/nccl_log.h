#pragma once

#include <optional>
#include <string>

namespace megalith {

// NCCL has no function that names the transports of its connections. It writes them to its own log, when it
// makes the connections (NCCL_DEBUG=INFO). These functions have it write that part of the log to memory.

/// Sets NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE so that NCCL writes what it says of starts and
/// connections to memory of this process, which keeps it until its end: some lines for each channel of a
/// connection. Does nothing if the user has set one of them, here or in a file that NCCL reads
/// (NCCL_CONF_FILE or ~/.nccl.conf, and /etc/nccl.conf), or if such a file cannot be opened by its name, as
/// without /proc. To be called before NCCL is, and while the process has one thread.
void keep_nccl_log();

/// What NCCL has written so far; nothing unless keep_nccl_log() has set the variables in this process.
std::optional<std::string> kept_nccl_log();

/// Whether the variable is one that keep_nccl_log() has set in this process.
bool is_of_kept_nccl_log(const std::string& variable);

}  // namespace megalith
