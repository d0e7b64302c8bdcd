#include "libcore/launch/hostfile.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

std::optional<int> slots_of(std::string_view text) {
  const auto number = parse_int(text);
  return number && *number >= 1 && *number <= 1024 ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

/// Takes the next word from `text`; empty at the end.
std::string_view take_word(std::string_view& text) {
  text = trim(text);
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  text.remove_prefix(word.size());
  return word;
}

/// Where the number of ranks begins in "HOST:N" or "[HOST]:N", behind the colon; npos if there is none. A
/// text with several colons is an IPv6 address without brackets.
size_t behind_host(std::string_view word) {
  if (const size_t bracket = word.rfind(']'); word.starts_with('[') && bracket != std::string_view::npos)
    return bracket + 1 < word.size() ? bracket + 2 : std::string_view::npos;
  const size_t colon = word.find(':');
  return colon != std::string_view::npos && colon == word.rfind(':') ? colon + 1 : std::string_view::npos;
}

std::optional<HostfileEntry> parse_line(std::string_view line) {
  std::string_view host = take_word(line);
  std::optional<int> slots;
  if (const size_t behind = behind_host(host); behind != std::string_view::npos) {
    slots = slots_of(host.substr(std::min(behind, host.size())));
    if (!slots || host[behind - 1] != ':') return std::nullopt;
    host = host.substr(0, behind - 1);
  }
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
    if (!word.starts_with("slots=") || slots) return std::nullopt;
    slots = slots_of(word.substr(6));
    if (!slots) return std::nullopt;
  }
  if (host.empty()) return std::nullopt;
  return HostfileEntry{.host = std::string(host), .slots = slots.value_or(0)};
}

/// "hosts:7: node1"
std::string place_of(const HostfileEntry& entry, const std::string& path) {
  return concat(path, ':', entry.line, ": ", quote_name(entry.host));
}

/// Says that no host of the file is this machine. `list`: the hosts without an address.
[[noreturn]] void refuse_unfound(const std::vector<const HostfileEntry*>& list, const std::string& path) {
  fail(ErrorKind::kUsage, path, ": none of its hosts is this machine",
       list.empty()
           ? std::string()
           : concat(", and ", list.size(), " have no known address, the first at ", place_of(*list[0], path)),
       "; give --node-rank");
}

/// The host of `list` that is this machine; null: none is. Leaves in `list` the hosts without an address, and
/// those that were not looked up before the deadline.
const HostfileEntry* look_for(const ThisMachine& machine, std::vector<const HostfileEntry*>& list,
                              const std::string& path, Deadline deadline) {
  const HostfileEntry* here = nullptr;
  std::vector<const HostfileEntry*> unknown;
  for (const HostfileEntry* host : list) {
    stop_if_asked();  // a name server that is silent takes seconds for each name
    const bool late = std::chrono::steady_clock::now() >= deadline;
    const auto is_here = late ? std::nullopt : machine.is(host->host);
    if (!is_here) unknown.push_back(host);
    if (!is_here.value_or(false)) continue;
    if (here)
      fail(ErrorKind::kUsage, place_of(*here, path), " and ", place_of(*host, path),
           " are both this machine; give --node-rank");
    here = host;
  }
  list = std::move(unknown);
  return here;
}

/// Waits until names are to be looked up again; false: the deadline is reached.
bool wait_for_names(Deadline deadline) {
  const Deadline now = std::chrono::steady_clock::now();
  if (now >= deadline) return false;
  stop_if_asked();
  std::this_thread::sleep_until(std::min(deadline, now + kBetweenLookUps));
  return true;
}

}  // namespace

std::vector<HostfileEntry> read_hostfile(const std::string& path) {
  std::vector<HostfileEntry> hosts;
  const std::string text = read_file(path);
  int number = 0;
  for (std::string_view left = text; !left.empty();) {
    ++number;
    std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    auto entry = parse_line(line);
    if (!entry)
      fail(ErrorKind::kUsage, path, ':', number, ": ", quote_name(line),
           "; wanted a host, then slots=N, its ranks");
    entry->line = number;
    hosts.push_back(std::move(*entry));
  }
  if (hosts.empty()) fail(ErrorKind::kUsage, path, ": holds no host");
  return hosts;
}

int place_of_this_machine(const std::vector<HostfileEntry>& hosts, const std::string& path,
                          Deadline deadline) {
  const ThisMachine machine;
  std::vector<const HostfileEntry*> unknown;
  for (const HostfileEntry& host : hosts) unknown.push_back(&host);
  // Without a deadline there is one round, however long it takes.
  const Deadline end_of_round = deadline == Deadline() ? Deadline::max() : deadline;
  for (bool first = true;; first = false) {
    if (const HostfileEntry* here = look_for(machine, unknown, path, end_of_round))
      return static_cast<int>(here - hosts.data());
    if (unknown.empty() || !wait_for_names(deadline)) refuse_unfound(unknown, path);
    if (first)
      warn(path, ": ", unknown.size(), unknown.size() == 1 ? " host has" : " hosts have",
           " no address yet, the first at ", place_of(*unknown[0], path),
           "; they are looked up again until the timeout");
  }
}

}  // namespace megalith
