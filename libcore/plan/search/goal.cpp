#include "libcore/plan/search/goal.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "libcore/config/parallel_config.h"

namespace megalith {
namespace {

constexpr int kAll = 64;  // if there are at most this many numbers of whole machines, all are tried
/// Otherwise at most this many are tried: one search for 405 billion parameters takes 15 ms.
constexpr int kSteps = 32;
constexpr int kFarther = 4;  // the search goes from a quarter to four times a number of devices
constexpr int kRounds = 3;   // rounds of search, each from the previous result
/// Doubling the devices is worthwhile if the run then takes at most this share of the time.
constexpr double kWorthwhile = 0.9;

bool meets(const Goal& goal, const Scale& scale) {
  return (!goal.days || scale.days <= *goal.days) && (!goal.budget || scale.cost <= *goal.budget);
}

/// The run on `devices` devices in whole machines; nothing if no plan fits.
std::optional<Scale> scale_to(const PlanProblem& p, const Fixed& fixed, const Goal& goal, int devices) {
  PlanProblem scaled = with_devices(p, devices);
  const SearchResult found = search_beside_saves(scaled, fixed, 1);
  if (found.plans.empty()) return std::nullopt;
  const double hours = goal.tokens / found.plans.front().tokens_per_second(scaled) / 3600;
  return Scale{devices, found.plans.front(), hours / 24, hours * devices * goal.gpu_hour};
}

/// Whether this many devices can share the work evenly: data ranks the batch, and the other ranks the heads,
/// the layers and, by a power of two, the sequence. Among many numbers of devices, only these are worth a
/// search.
bool divides_evenly(const PlanProblem& p, int64_t devices) {
  int64_t rest = devices;
  for (const int64_t size : {p.global_batch, int64_t{p.model.heads}, int64_t{p.model.layers}})
    rest /= std::gcd(rest, size);  // gcd(x, 0) is x: any number of data ranks divides an open batch
  return std::has_single_bit(static_cast<uint64_t>(rest));
}

/// The numbers of devices in whole machines between `low` and `high`. If there are more than kAll, at most
/// kSteps of those that divide evenly: multiples of two, four, eight … machines.
std::vector<int> between(const PlanProblem& p, int low, int high) {
  std::vector<int> out;
  const int machine = std::min(p.machine.whole(), high);
  for (int devices = low / machine * machine + machine; devices < high; devices += machine)
    out.push_back(devices);
  if (out.size() <= kAll) return out;
  std::erase_if(out, [&](int devices) { return !divides_evenly(p, devices); });
  for (int64_t each = machine; out.size() > kSteps; each *= 2)
    std::erase_if(out, [&](int devices) { return devices % (2 * each) != 0; });
  return out;
}

/// The numbers of devices tried so far with their results, and queries about them.
class Tries {
 public:
  Tries(const PlanProblem& p, const Fixed& fixed, const Goal& goal) : p_(p), fixed_(fixed), goal_(goal) {}

  const std::optional<Scale>& at(int devices) {
    const auto [place, added] = tried_.try_emplace(devices);
    if (added) place->second = scale_to(p_, fixed_, goal_, devices);
    return place->second;
  }
  /// Doubles the devices, and tries the midpoints, until the run hardly ends sooner and the goal demands no
  /// more. Returns the results of the doubled numbers that have a plan.
  std::vector<Scale> doubled() {
    std::vector<Scale> out;
    for (int64_t devices = 1; devices <= ParallelConfig::kMaxRanks; devices = next(devices)) {
      if (const int half = static_cast<int>(devices / 4 * 3);
          bounded() && half > 0 && half % machine(half) == 0)
        at(half);
      const auto& scale = at(static_cast<int>(devices));
      if (!scale) continue;
      const bool hardly = !out.empty() && scale->days > kWorthwhile * out.back().days;
      if (hardly && !wants_more(*scale)) break;
      out.push_back(*scale);
    }
    return out;
  }
  /// The result with the fewest devices that meets the goal.
  std::optional<Scale> fewest() {
    if (!bounded()) return std::nullopt;
    std::optional<Scale> best = fewest_tried();
    if (!best) {
      try_beside_soonest();
      best = fewest_tried();
    }
    // Fewer devices may be faster than more: if they share the batch evenly, they idle less than devices that
    // do not share it evenly.
    for (int round = 0; best && round < kRounds; ++round) {
      const int devices = best->devices;
      best = first_meeting(devices / kFarther, *best);
      if (best->devices == devices) break;
    }
    return best ? first_meeting(tried_below(best->devices), *best) : best;
  }
  /// The result that meets the goal and ends first.
  std::optional<Scale> soonest() {
    try_beside_soonest();
    const std::optional<int> devices = soonest_devices(true);
    return devices ? at(*devices) : std::nullopt;
  }

 private:
  bool bounded() const { return goal_.days || goal_.budget; }
  int machine(int devices) const { return std::min(p_.machine.whole(), devices); }
  /// The next number to try: twice `devices`, but one whole machine before several machines.
  int64_t next(int64_t devices) const {
    const int64_t local = p_.machine.whole();
    return devices < local ? std::min(2 * devices, local) : 2 * devices;
  }
  bool wants_more(const Scale& scale) const {
    const bool met = std::any_of(tried_.begin(), tried_.end(), [&](const auto& entry) {
      return entry.second && meets(goal_, *entry.second);
    });
    return (goal_.days && !met) || (goal_.budget && scale.cost <= *goal_.budget);
  }
  /// The tried number of devices with which the run ends first; `meeting`: only among those that meet the
  /// goal.
  std::optional<int> soonest_devices(bool meeting) const {
    std::optional<int> out;
    double min_days = 0;
    for (const auto& [devices, scale] : tried_) {
      if (!scale || (meeting && !meets(goal_, *scale)) || (out && scale->days >= min_days)) continue;
      out = devices;
      min_days = scale->days;
    }
    return out;
  }
  /// The result with the fewest devices among the tried ones that meet the goal.
  std::optional<Scale> fewest_tried() const {
    const auto found = std::find_if(tried_.begin(), tried_.end(), [&](const auto& entry) {
      return entry.second && meets(goal_, *entry.second);
    });
    return found == tried_.end() ? std::nullopt : found->second;
  }
  /// The result with the fewest devices, from `fewer` up to those of `meeting`, that meets the goal.
  Scale first_meeting(int fewer, const Scale& meeting) {
    for (const int devices : between(p_, fewer, meeting.devices))
      if (const auto& scale = at(devices); scale && meets(goal_, *scale)) return *scale;
    return meeting;
  }
  /// The nearest tried numbers below and above `devices`. If there is none: 0 below, and `devices` itself
  /// above.
  int tried_below(int devices) const {
    const auto place = tried_.lower_bound(devices);
    return place == tried_.begin() ? 0 : std::prev(place)->first;
  }
  int tried_above(int devices) const {
    const auto place = tried_.upper_bound(devices);
    return place == tried_.end() ? devices : place->first;
  }
  /// The tried number of devices that meets the goal and ends first. If none meets the goal, the one that
  /// ends first; if none has a plan, the problem's world.
  int best_devices() const {
    const std::optional<int> meeting = soonest_devices(true);
    return meeting ? *meeting : soonest_devices(false).value_or(p_.machine.world);
  }
  /// Tries numbers of devices around the one with which the run ends first: its neighbours, then distant
  /// numbers, then the neighbours of the new first.
  void try_beside_soonest() {
    try_neighbours();
    int best = 0;
    for (int round = 0; round < kRounds && best != best_devices(); ++round) {
      best = best_devices();
      const int64_t most = std::min<int64_t>(int64_t{kFarther} * best, ParallelConfig::kMaxRanks);
      for (const int devices : between(p_, best / kFarther, static_cast<int>(most))) at(devices);
    }
    try_neighbours();
  }
  void try_neighbours() {
    const int best = best_devices();
    for (const int devices : between(p_, tried_below(best), tried_above(best))) at(devices);
  }

  const PlanProblem& p_;
  const Fixed& fixed_;
  const Goal& goal_;
  std::map<int, std::optional<Scale>> tried_;  // by number of devices; nothing: no plan fits
};

}  // namespace

PlanProblem with_devices(PlanProblem p, int devices) {
  set_world(p.machine, devices);
  return p;
}

Scaling scaling(const PlanProblem& p, const Fixed& fixed, const Goal& goal) {
  Tries tries(p, fixed, goal);
  Scaling out;
  out.powers = tries.doubled();
  out.fewest = tries.fewest();
  if (goal.budget) out.fastest = tries.soonest();
  return out;
}

}  // namespace megalith
