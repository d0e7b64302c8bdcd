#include "libcore/launch/rank_table.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/file.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

constexpr uint64_t kFirstJobPort = 20000, kJobPorts = 10000;

struct Place {
  int rank;
  std::string server;
};

/// hccl_tools.py writes numbers as strings, people also as numbers.
int number(const Json& json, const std::string& where) {
  if (json.is_int() && json.as_int() >= 0 && json.as_int() < (1 << 20))
    return static_cast<int>(json.as_int());
  const auto value = json.is_string() ? parse_int(json.as_string()) : std::nullopt;
  if (!value || *value < 0 || *value >= (1 << 20))
    fail(ErrorKind::kUsage, where, ": ", json.dump(), " is no rank; wanted a number from 0");
  return static_cast<int>(*value);
}

std::vector<Place> places_of(const Json& table, const std::string& path) {
  std::vector<Place> places;
  for (const Json& server : table["server_list"].as_array())
    for (const Json& device : server["device"].as_array())
      places.push_back({number(device["rank_id"], concat(path, ": server_list: rank_id")),
                        server["server_id"].as_string()});
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.rank < b.rank; });
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i].rank != static_cast<int>(i))
      fail(ErrorKind::kUsage, path, ": server_list: ",
           i > 0 && places[i].rank == places[i - 1].rank
               ? concat("rank_id ", places[i].rank, " is there twice")
               : concat("rank_id ", i, " is missing"),
           "; wanted 0 to ", places.size() - 1, " once each; make the table anew with hccl_tools.py");
  return places;
}

}  // namespace

int port_of_job(std::string_view job) {
  return static_cast<int>(kFirstJobPort + xxh64(job) % kJobPorts);
}

RankTable read_rank_table(const std::string& path, int rank) {
  const std::string text = read_file(path);
  const Json table = Json::parse(text, path);
  if (const Json* status = table.find("status"); status && *status != Json("completed"))
    fail(ErrorKind::kUsage, path, ": status: ", status->dump(), ", wanted \"completed\"");
  const std::vector<Place> places = [&] {
    try {
      return places_of(table, path);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) throw;
      fail(ErrorKind::kData, path, ": server_list: ", error.what());
    }
  }();
  if (rank >= static_cast<int>(places.size()))
    fail(ErrorKind::kUsage, path, ": holds ", places.size(), " ranks, not RANK_ID ", rank);
  RankTable out{.world = static_cast<int>(places.size()),
                .first_server = places.front().server,
                .port = port_of_job(text)};
  for (const Place& place : places) {
    if (place.server != places[static_cast<size_t>(rank)].server) continue;
    if (place.rank < rank) ++out.local_rank;
    ++out.local_world;
  }
  return out;
}

}  // namespace megalith
