#pragma once

#include <string>
#include <vector>

#include "libcore/launch/socket.h"

namespace megalith {

/// One line of a host file.
struct HostfileEntry {
  std::string host = {};
  int slots = 0;  // ranks there; 0 if not given
  int line = 0;   // of the file, from 1
};

/// The servers of a run, in order, one on each line: "HOST", "HOST slots=N" (Open MPI, DeepSpeed) or "HOST:N"
/// (MPICH); an IPv6 address before ":N" is in brackets. Blank lines and comments from "#" on are skipped.
/// kUsage, with file and line, for any other text; kNoInput if the file cannot be read.
std::vector<HostfileEntry> read_hostfile(const std::string& path);

/// The place of this machine among the entries, found by its addresses. If it is none of them, hosts that
/// have no address yet are looked up again until the deadline, since some systems (Kubernetes) give a machine
/// its name late; a warning says so. kUsage, with the lines of the file, if this machine is not in it or is
/// in it more than once.
int place_of_this_machine(const std::vector<HostfileEntry>&, const std::string& path, Deadline = {});

}  // namespace megalith
