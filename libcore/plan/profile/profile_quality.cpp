#include "libcore/plan/profile/profile_quality.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {

std::string unsteadiness(const DeviceProfile& profile) {
  constexpr double kSteady = 0.1;  // spread relative to the median
  std::vector<double> spreads;
  for (const ProfilePoint& point : profile.points) spreads.push_back(point.spread);
  std::sort(spreads.begin(), spreads.end());
  const auto unsteady = spreads.end() - std::upper_bound(spreads.begin(), spreads.end(), kSteady);
  const auto count = static_cast<std::ptrdiff_t>(spreads.size());
  if (2 * unsteady <= count) return "";
  return concat("the times of ", unsteady, " of ", count,
                " points spread by more than a tenth, the worst by ", format_fixed(100 * spreads.back(), 0),
                " %; measure while nothing else runs, or for longer than ", format_duration(profile.seconds),
                " (--seconds)");
}

}  // namespace megalith
