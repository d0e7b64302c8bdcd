#pragma once

#include <functional>
#include <vector>

#include "libcore/plan/profile/device_profile.h"

namespace megalith {

/// The points to measure, without times: products as in the layers that are planned (tokens by widths, in
/// their forward and both backward forms), attention by head size and sequence, memory-bound ops, and a
/// start. Any first part of the list is a coarser grid over the same range, and the smallest point of each
/// kind comes first. `heads`: heads of attention, enough to give every core or multiprocessor work.
std::vector<ProfilePoint> profile_grid(int64_t heads);

/// The indices 0 to count - 1 in bit-reversed order, so that any first part of the list is spread evenly over
/// the range.
std::vector<size_t> spread_order(size_t count);

/// How the points are timed.
struct Probing {
  /// Seconds of `times` successive calls of the point's op.
  std::function<double(const ProfilePoint&, int64_t times)> seconds_of;
  std::function<double()> clock;  // seconds since measuring began
  std::function<void(double elapsed, size_t measured)> progress;
};

/// Measures the points in order. In the first two fifths of the time it takes a warm-up and one sample of
/// each point. After that each round takes another sample of every point whose median is not steady, so that
/// a temporary disturbance affects one sample of many points rather than many samples of one. It ends when
/// all points are steady or `seconds` have passed.
/// However late it is, at least kLeastPoints points are begun, and every begun point gets its minimum number
/// of samples: a busy machine's profile is coarse, not empty. Points that were not reached in the first two
/// fifths are left out, and so are points of which one call takes more than 1/200 of `seconds` and more than
/// 50 ms. Returns the points in the grid's order.
std::vector<ProfilePoint> measure_grid(const std::vector<ProfilePoint>& grid, double seconds, const Probing&);
constexpr size_t kLeastPoints = 16;

}  // namespace megalith
