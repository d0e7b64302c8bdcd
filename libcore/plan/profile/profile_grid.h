#pragma once

#include <functional>
#include <vector>

#include "libcore/plan/profile/device_profile.h"

namespace megalith {

/// What is to be measured, without times: products of the layers that planning meets (tokens by widths, in
/// their forward and both backward forms), attention by head size and sequence, ops that memory bounds, and a
/// start. In an order of which every beginning is a coarser grid of the same range, each kind's smallest
/// first. `heads` of attention: enough to give every core or multiprocessor work.
std::vector<ProfilePoint> profile_grid(int64_t heads);

/// The indices 0 to count - 1 with their bits reversed: each beginning of it is spread evenly.
std::vector<size_t> spread_order(size_t count);

/// How the points are timed.
struct Probing {
  /// Seconds of `times` calls of the point's op, one after the other.
  std::function<double(const ProfilePoint&, int64_t times)> seconds_of;
  std::function<double()> clock;  // seconds since measuring began
  std::function<void(double elapsed, size_t measured)> progress;
};

/// Measures the points in their order: first a warm-up and a sample of each, for two fifths of the time, then
/// round after round a sample of those whose median is not steady, so that what disturbs the machine for a
/// while disturbs one sample of many points, until all are steady or `seconds` have passed. Each point that
/// was begun gets its least samples and the least points are begun, however late it is: a busy machine's
/// profile is coarse, not empty. Points for which the time is too short, or a call of which would take more
/// than a two-hundredth of it and than 50 ms, are left out. In the grid's order.
std::vector<ProfilePoint> measure_grid(const std::vector<ProfilePoint>& grid, double seconds, const Probing&);
constexpr size_t kLeastPoints = 16;

}  // namespace megalith
