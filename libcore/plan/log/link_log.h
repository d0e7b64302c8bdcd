#pragma once

#include <string>

#include "libcore/plan/price/candidate.h"

namespace megalith {

/// What a program of nccl-tests (all_reduce_perf and the like) printed about a collective over all devices.
struct LinkLog {
  int ranks = 0;
  int machines = 0;
  double bus_bandwidth = 0;  // bytes/s of the largest message, from the out-of-place columns
};

/// Whether the text is the output of an nccl-tests program: it has a column "busbw".
bool is_link_log(const std::string& text);

/// kData with the place when the devices are not listed or the table has no row.
LinkLog parse_link_log(const std::string& text, const std::string& path);

/// The problem's coefficients with one replaced by the logged collective's rate: link_rate if one machine ran
/// the collective, otherwise network_rate (relative to the network bandwidth of all devices of a machine
/// together). kUsage when the rate is outside the coefficient's bounds: the log is then of other links than
/// the device's.
Coefficients with_links(const LinkLog&, const PlanProblem&, const std::string& path);

}  // namespace megalith
