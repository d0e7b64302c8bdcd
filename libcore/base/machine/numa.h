#pragma once

#include <optional>
#include <string>
#include <vector>

namespace megalith {

/// CPUs to which the same memory is near: a node of a machine with several memories (NUMA).
struct NumaNode {
  int number = 0;  // the system's
  std::vector<int> cpus = {};
};

/// The nodes that have CPUs on which this process may run, with these CPUs, by the nodes' numbers; from
/// /sys/devices/system/node. One node with all these CPUs if the system names none. `root`: the folder that
/// stands for /, in tests one with files of their own.
std::vector<NumaNode> numa_nodes(const std::string& root = {});

/// The node for rank `rank` of the `ranks` of this machine, each of which has `threads` threads: neighbouring
/// ranks share a node. Nothing if there is only one node, if there are fewer ranks than nodes, or if the
/// node's CPUs are fewer than the threads of its ranks.
std::optional<NumaNode> node_of_rank(const std::vector<NumaNode>&, int rank, int ranks, int threads);

/// Lets the calling thread, and the threads that it starts, run on the CPUs of this node only. The system
/// then gives them memory of the node, because a page comes from where the thread runs that first touches it.
/// Returns whether the system agreed.
bool stay_on(const NumaNode&);

}  // namespace megalith
