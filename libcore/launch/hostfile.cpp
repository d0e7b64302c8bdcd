#include "libcore/launch/hostfile.h"

#include <optional>
#include <sstream>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/launch/socket.h"

namespace megalith {
namespace {

std::optional<int> slots_of(std::string_view text) {
  const auto number = parse_int(text);
  return number && *number >= 1 && *number <= 1024 ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<HostfileEntry> parse_line(const std::string& line) {
  std::istringstream words(line);
  HostfileEntry entry;
  words >> entry.host;
  std::optional<int> slots;
  if (const size_t colon = entry.host.rfind(':');
      colon != std::string::npos && colon == entry.host.find(':')) {
    slots = slots_of(std::string_view(entry.host).substr(colon + 1));
    if (!slots) return std::nullopt;
    entry.host.resize(colon);
  }
  for (std::string word; words >> word;) {
    if (!word.starts_with("slots=") || slots) return std::nullopt;
    slots = slots_of(std::string_view(word).substr(6));
    if (!slots) return std::nullopt;
  }
  entry.slots = slots.value_or(0);
  return entry.host.empty() ? std::nullopt : std::optional(entry);
}

}  // namespace

std::vector<HostfileEntry> read_hostfile(const std::string& path) {
  std::vector<HostfileEntry> hosts;
  int number = 0;
  for (const std::string& line : split(read_file(path), '\n')) {
    ++number;
    const std::string text(trim(line.substr(0, line.find('#'))));
    if (text.empty()) continue;
    const auto entry = parse_line(text);
    if (!entry)
      fail(ErrorKind::kUsage, path, ':', number, ": ", quote(text),
           "; wanted a host, then slots=N, its ranks");
    hosts.push_back(*entry);
  }
  if (hosts.empty()) fail(ErrorKind::kUsage, path, ": holds no host");
  return hosts;
}

int place_of_this_machine(const std::vector<HostfileEntry>& hosts, const std::string& path) {
  std::optional<int> place;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (!is_this_machine(hosts[i].host)) continue;
    if (place)
      fail(ErrorKind::kUsage, path, ": ", hosts[static_cast<size_t>(*place)].host, " and ", hosts[i].host,
           " are both this machine; give --node-rank");
    place = static_cast<int>(i);
  }
  if (!place) fail(ErrorKind::kUsage, path, ": none of its hosts is this machine; give --node-rank");
  return *place;
}

}  // namespace megalith
