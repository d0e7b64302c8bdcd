#pragma once

#include <string>

#include "libcore/plan/price/candidate.h"

namespace megalith {

/// What a program of nccl-tests (all_reduce_perf and the like) printed about a collective over all devices.
struct LinkLog {
  int ranks = 0;
  int machines = 0;
  double bus_bandwidth = 0;  // bytes/s, out of place, of the largest message
};

/// Whether the text is such an output: it has a column "busbw".
bool is_link_log(const std::string& text);

/// kData with the place when the devices are not listed or the table has no row.
LinkLog parse_link_log(const std::string& text, const std::string& path);

/// Coefficients with which the logged collective takes as long as it did: the rate of the links if one
/// machine ran it, otherwise that of the network (each device's share of what all devices of a machine reach
/// together). kUsage when the rate is outside the coefficient's bounds: then the links are not the device's.
Coefficients with_links(const LinkLog&, const PlanProblem&, const std::string& path);

}  // namespace megalith
