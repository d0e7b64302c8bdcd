#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// What one rank learns from a rank table, the file of Ascend's hccl_tools.py that says which server holds
/// which rank.
struct RankTable {
  int world = 0;
  std::string first_server;  // server_id of rank 0
  int local_rank = 0;        // of `rank` on its server
  int local_world = 0;       // ranks of that server
  int port = 0;              // derived from the table's bytes, so the same for all ranks
};

/// Reads the table at `path` as seen by `rank`. kUsage if it is not complete (status, server_count), if its
/// ranks are not 0 to n-1 once each, if `rank` is not among them, or if a device has no number or appears
/// twice on a server; kNoInput and kData if it cannot be read.
RankTable read_rank_table(const std::string& path, int rank);

/// The device numbers of a range as hccl_tools.py accepts it: "[0,8)", or "8" alone, means 0 to 7. kUsage for
/// any other text.
std::vector<int> parse_devices(std::string_view range);

/// The table of one server as hccl_tools.py writes it, one rank for each device, counted from 0; all numbers
/// are strings. Each device gets the address of the server: Megalith uses no other address.
std::string rank_table_text(const std::vector<int>& devices, const std::string& server);

/// Merges several tables into one: the servers in the order given, with their ranks numbered consecutively.
/// kUsage if a server is in two of them; otherwise throws as read_rank_table(), with the file's name.
std::string merged_rank_table_text(const std::vector<std::string>& paths);

/// A port for a job, derived from anything that its ranks have in common. It is below the ports that systems
/// assign, so that it is rarely taken.
int port_of_job(std::string_view job);

}  // namespace megalith
