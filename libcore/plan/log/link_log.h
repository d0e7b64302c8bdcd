#pragma once

#include <string>

#include "libcore/plan/price/candidate.h"

namespace megalith {

/// The rate of a collective over all devices, as printed by a program of nccl-tests (such as
/// all_reduce_perf).
struct LinkLog {
  int ranks = 0;
  int machines = 0;
  double bus_bandwidth = 0;  // bus bandwidth of the largest message in bytes/s, from the out-of-place columns
};

/// Whether the text is the output of an nccl-tests program: it has a column "busbw".
bool is_link_log(const std::string& text);

/// Reads the output of such a program; `path` is its file, for messages. kData with the place when the
/// devices are not listed or the table has no row.
LinkLog parse_link_log(const std::string& text, const std::string& path);

/// The problem's coefficients, with one of them set to the rate of the logged collective: link_rate if a
/// single machine ran it, otherwise network_rate, relative to the network bandwidth of all devices of a
/// machine together. kUsage when the rate is outside the coefficient's bounds, since the log is then of links
/// of another device.
Coefficients with_links(const LinkLog&, const PlanProblem&, const std::string& path);

}  // namespace megalith
