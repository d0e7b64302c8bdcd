#include "libcore/plan/log/link_log.h"

#include <algorithm>
#include <set>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

constexpr char kColumn[] = "busbw";

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (size_t at = line.find_first_not_of(" \t\r"); at != line.npos;) {
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    out.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(" \t\r", end);
  }
  return out;
}

const CoefficientInfo& info_of(double Coefficients::*member) {
  for (const CoefficientInfo& info : coefficient_table())
    if (info.member == member) return info;
  fail(ErrorKind::kInternal, "a coefficient without a row");
}

}  // namespace

bool is_link_log(const std::string& text) {
  return text.find(kColumn) != text.npos;
}

LinkLog parse_link_log(const std::string& text, const std::string& path) {
  LinkLog log;
  std::set<std::string_view> machines;
  size_t column = 0;
  double largest = -1;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty()) continue;
    const auto name = std::find(words.begin(), words.end(), kColumn);
    if (words.front() == "#" && name != words.end() && column == 0)  // "#  size  count … busbw #wrong …"
      column = static_cast<size_t>(name - words.begin()) - 1;
    // "#  Rank  0 Group  0 Pid 2512 on node1 device  0 [0x07] NVIDIA H100 80GB HBM3"
    const auto on = std::find(words.begin(), words.end(), "on");
    if (words.size() > 2 && words[0] == "#" && words[1] == "Rank" && words.end() - on > 1) {
      ++log.ranks;
      machines.insert(on[1]);
    }
    const auto bytes = parse_double(words.front());
    if (column == 0 || !bytes || *bytes < largest) continue;
    const auto rate = words.size() > column ? parse_double(words[column]) : std::nullopt;
    if (!rate) fail(ErrorKind::kData, path, ": the row ", quote(trim(line)), " has no ", kColumn);
    largest = *bytes;
    log.bus_bandwidth = *rate * 1e9;
  }
  log.machines = static_cast<int>(machines.size());
  if (log.ranks < 2)
    fail(ErrorKind::kData, path, ": ", log.ranks,
         " lines \"# Rank N … on HOST device D\", wanted at least 2");
  if (log.bus_bandwidth <= 0)
    fail(ErrorKind::kData, path, ": no row of its table has a ", kColumn, " above 0");
  return log;
}

Coefficients with_links(const LinkLog& log, const PlanProblem& p, const std::string& path) {
  const Accelerator& device = p.machine.device;
  const bool here = log.machines == 1;
  const double promised = here ? device.link_bandwidth : device.network_bandwidth * log.ranks / log.machines;
  double Coefficients::*const member = here ? &Coefficients::link_rate : &Coefficients::network_rate;
  const CoefficientInfo& info = info_of(member);
  const double rate = log.bus_bandwidth / promised;
  if (rate < info.low || rate > info.high)
    fail(ErrorKind::kUsage, path, ": ", log.ranks, " devices of ", log.machines, " machines reached ",
         format_fixed(log.bus_bandwidth / 1e9, 1), " GB/s, ", format_fixed(rate, 2), " of the ",
         format_fixed(promised / 1e9, 1), " GB/s that ", device.name, here ? "'s links" : "'s network",
         " should have, wanted ", format_fixed(info.low, 2), " to ", format_fixed(info.high, 2), "; ",
         here ? "give another --gpu" : "give --network-gbps");
  Coefficients out = *p.coefficients;
  out.*member = rate;
  return out;
}

}  // namespace megalith
