#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// A file of Ascend's hccl_tools.py: which server holds which rank.
struct RankTable {
  int world = 0;
  std::string first_server;  // server_id of rank 0
  int local_rank = 0;        // of `rank` on its server
  int local_world = 0;       // ranks of that server
  int port = 0;              // from the table's bytes, so that all ranks have the same one
};

/// The table at `path` as `rank` sees it. kUsage when it is not complete (status, server_count), when its
/// ranks are not 0 to n-1 once each, or lack `rank`, or a device has no number; kNoInput and kData when it
/// cannot be read.
RankTable read_rank_table(const std::string& path, int rank);

/// The device numbers that "[0,8)", as hccl_tools.py takes them, or "8" stands for: 0 to 7. kUsage.
std::vector<int> parse_devices(std::string_view range);

/// The table of one server as hccl_tools.py writes it, one rank a device from 0 on; all numbers are strings.
/// A device's address is the server's, because nothing here uses another.
std::string rank_table_text(const std::vector<int>& devices, const std::string& server);

/// One table of several: their servers in the order given, ranks counted on. kUsage when a server stands in
/// two of them, and as read_rank_table(), with the file's name.
std::string merged_rank_table_text(const std::vector<std::string>& paths);

/// A port for a job, from anything that its ranks have in common; below those that systems give out, so that
/// it is rarely taken.
int port_of_job(std::string_view job);

}  // namespace megalith
