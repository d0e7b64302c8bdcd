#pragma once

#include <string>
#include <vector>

namespace megalith {

/// A line of a host file.
struct HostfileEntry {
  std::string host = {};
  int slots = 0;  // ranks there; 0: not said
};

/// The servers of a run in their order: a line each, "HOST", "HOST slots=N" (Open MPI, DeepSpeed) or "HOST:N"
/// (MPICH); blank lines and what follows "#" are left out. kUsage with file and line for anything else;
/// kNoInput.
std::vector<HostfileEntry> read_hostfile(const std::string& path);

/// The place of this machine among them, by its addresses. kUsage when it is not there, or more than once.
int place_of_this_machine(const std::vector<HostfileEntry>&, const std::string& path);

}  // namespace megalith
