#pragma once

#include <string>
#include <string_view>

namespace megalith {

/// A file of Ascend's hccl_tools.py: which server holds which rank.
struct RankTable {
  int world = 0;
  std::string first_server;  // server_id of rank 0
  int local_rank = 0;        // of `rank` on its server
  int local_world = 0;       // ranks of that server
  int port = 0;              // derived from the table's bytes: the same on all ranks
};

/// The table at `path` as `rank` sees it. kUsage when it is not complete, when its ranks are not 0 to n-1
/// once each, or lack `rank`; kNoInput and kData when it cannot be read.
RankTable read_rank_table(const std::string& path, int rank);

/// A port for a job, from anything that its ranks have in common; below those that systems give out.
int port_of_job(std::string_view job);

}  // namespace megalith
