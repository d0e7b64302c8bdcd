#include "libcore/launch/rank_table.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/hash/xxh64.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

constexpr uint64_t kFirstJobPort = 20000, kJobPorts = 10000;

struct ListedRank {
  int rank;
  std::string server;
};

/// A value of a table, and its place in the table, for messages.
struct Place {
  const Json& json;
  std::string where;
  const char* before_key = ".";

  std::string shown() const {
    constexpr size_t kMost = 200;
    return printable(json.dump(), kMost);
  }
  [[noreturn]] void refuse(const char* wanted) const {
    fail(ErrorKind::kData, where, ": ", shown(), " is not a ", wanted);
  }
  Place at(const std::string& key) const {
    const Json* const value = json.find(key);
    if (!value)
      fail(ErrorKind::kData, where, ": has no \"", key,
           "\"; make the table again with hccl_tools.py or megalith-rank-table");
    return {*value, concat(where, before_key, key)};
  }
  std::vector<Place> list() const {
    if (!json.is_array()) refuse("list");
    std::vector<Place> places;
    for (const Json& value : json.as_array())
      places.push_back({value, concat(where, '[', places.size(), ']')});
    return places;
  }
  const std::string& text() const {
    if (!json.is_string()) refuse("string");
    return json.as_string();
  }
  /// hccl_tools.py writes numbers as strings; people also write plain numbers.
  int number(const char* what) const {
    constexpr int64_t kEnd = 1 << 20;
    const auto value = json.is_int()      ? std::optional(json.as_int())
                       : json.is_string() ? parse_int(json.as_string())
                                          : std::nullopt;
    if (!value || *value < 0 || *value >= kEnd)
      fail(ErrorKind::kUsage, where, ": ", shown(), " is not a ", what, "; wanted a number from 0");
    return static_cast<int>(*value);
  }
};

/// The ranks that a server lists. kUsage if a device is listed twice, or the server has no name.
std::vector<ListedRank> ranks_on(const Place& server) {
  std::vector<ListedRank> ranks;
  std::set<int> seen;
  const Place id = server.at("server_id");
  if (id.text().empty())
    fail(ErrorKind::kUsage, id.where, ": \"\" is not the address of a server; make the server's table again");
  for (const Place& device : server.at("device").list()) {
    const Place number = device.at("device_id");
    if (!seen.insert(number.number("device")).second)
      fail(ErrorKind::kUsage, number.where, ": ", number.shown(), " appears twice on server ",
           quote_name(id.text()), "; a device has one rank");
    if (device.json.find("device_ip")) device.at("device_ip").text();
    ranks.push_back({device.at("rank_id").number("rank"), id.text()});
  }
  return ranks;
}

/// Lists the ranks of all servers. Checks the whole table, whichever rank reads it, so that a faulty table is
/// refused as a whole.
std::vector<ListedRank> listed_ranks(const Place& table) {
  std::vector<ListedRank> ranks;
  const std::vector<Place> servers = table.at("server_list").list();
  for (const Place& server : servers)
    for (ListedRank& rank : ranks_on(server)) ranks.push_back(std::move(rank));
  if (!table.json.find("server_count")) return ranks;
  const Place count = table.at("server_count");
  if (static_cast<size_t>(count.number("number of servers")) != servers.size())
    fail(ErrorKind::kUsage, count.where, ": ", count.shown(), ", but server_list holds ", servers.size(),
         "; merge the tables of all servers (megalith-rank-table merge)");
  return ranks;
}

std::vector<ListedRank> ranks_of(const Json& table, const std::string& path) {
  std::vector<ListedRank> ranks = listed_ranks({table, path, ": "});
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const ListedRank& a, const ListedRank& b) { return a.rank < b.rank; });
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i].rank != static_cast<int>(i))
      fail(ErrorKind::kUsage, path, ": server_list: ",
           i > 0 && ranks[i].rank == ranks[i - 1].rank ? concat("rank_id ", ranks[i].rank, " appears twice")
                                                       : concat("rank_id ", i, " is missing"),
           "; wanted 0 to ", ranks.size() - 1, " once each; make the table again with hccl_tools.py");
  return ranks;
}

}  // namespace

int port_of_job(std::string_view job) {
  return static_cast<int>(kFirstJobPort + xxh64(job) % kJobPorts);
}

std::vector<int> parse_devices(std::string_view range) {
  constexpr int64_t kMax = 1 << 20;
  const auto refuse = [&] {
    fail(ErrorKind::kUsage, "--device_num ", quote_name(range),
         ": wanted \"[0,8)\", devices 0 to 7, or their number");
  };
  int64_t first = 0, end = 0;
  if (const auto count = parse_int(range)) {
    end = *count;
  } else {
    const size_t comma = range.find(',');
    if (!range.starts_with('[') || !range.ends_with(')') || comma == std::string_view::npos) refuse();
    const auto from = parse_int(trim(range.substr(1, comma - 1)));
    const auto to = parse_int(trim(range.substr(comma + 1, range.size() - comma - 2)));
    if (!from || !to) refuse();
    first = *from;
    end = *to;
  }
  if (first < 0 || end <= first || end > kMax) refuse();
  std::vector<int> devices;
  for (int64_t device = first; device < end; ++device) devices.push_back(static_cast<int>(device));
  return devices;
}

namespace {

Json server_entry(const std::string& server, Json devices) {
  return Json(
      Json::Object{{"server_id", server}, {"device", std::move(devices)}, {"host_nic_ip", "reserve"}});
}

std::string table_text(Json servers) {
  constexpr int kIndent = 4;
  const std::string count = std::to_string(servers.as_array().size());
  return Json(Json::Object{{"version", "1.0"},
                           {"server_count", count},
                           {"server_list", std::move(servers)},
                           {"status", "completed"}})
             .dump(kIndent) +
         "\n";
}

/// The servers of a checked table.
Json servers_of(const std::string& path) {
  read_rank_table(path, 0);
  return Json::load(path)["server_list"];
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.as_string() : value.dump();
}

}  // namespace

std::string rank_table_text(const std::vector<int>& devices, const std::string& server) {
  Json list = Json::array(), servers = Json::array();
  for (size_t rank = 0; rank < devices.size(); ++rank)
    list.push_back(Json(Json::Object{{"device_id", std::to_string(devices[rank])},
                                     {"device_ip", server},
                                     {"rank_id", std::to_string(rank)}}));
  servers.push_back(server_entry(server, std::move(list)));
  return table_text(std::move(servers));
}

std::string merged_rank_table_text(const std::vector<std::string>& paths) {
  Json servers = Json::array();
  std::map<std::string, std::string> seen;  // the file in which each server was found
  int rank = 0;
  for (const std::string& path : paths) {
    const Json list = servers_of(path);
    for (const Json& server : list.as_array()) {
      const std::string& name = server["server_id"].as_string();
      if (const auto [at, fresh] = seen.emplace(name, path); !fresh)
        fail(ErrorKind::kUsage, path, ": server_list: server ", quote_name(name), " is already in ",
             at->second, "; a server has one table, of all its devices");
      Json devices = Json::array();
      for (const Json& device : server["device"].as_array()) {
        const Json* const address = device.find("device_ip");
        devices.push_back(Json(Json::Object{{"device_id", text_of(device["device_id"])},
                                            {"device_ip", address ? text_of(*address) : name},
                                            {"rank_id", std::to_string(rank++)}}));
      }
      servers.push_back(server_entry(name, std::move(devices)));
    }
  }
  return table_text(std::move(servers));
}

RankTable read_rank_table(const std::string& path, int rank) {
  const Json table = Json::load(path);
  if (const Json* status = table.find("status"); status && *status != Json("completed"))
    fail(ErrorKind::kUsage, path, ": status: ", printable(status->dump(), 200), ", wanted \"completed\"");
  const std::vector<ListedRank> ranks = ranks_of(table, path);
  if (rank >= static_cast<int>(ranks.size()))
    fail(ErrorKind::kUsage, path, ": holds ", ranks.size(), " ranks, not RANK_ID ", rank);
  RankTable out{.world = static_cast<int>(ranks.size()),
                .first_server = ranks.front().server,
                .port = port_of_job(table.dump())};
  for (const ListedRank& listed : ranks) {
    if (listed.server != ranks[static_cast<size_t>(rank)].server) continue;
    if (listed.rank < rank) ++out.local_rank;
    ++out.local_world;
  }
  return out;
}

}  // namespace megalith
