#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

namespace megalith {

/// Code points first, first + step, … last become lower case by adding `added`.
struct LowerRun {
  uint32_t first, last, step;
  int32_t added;
};

/// The only capital that becomes two characters: an i with a separate dot above.
constexpr uint32_t kDottedCapitalI = 0x130;
constexpr std::string_view kLowerDottedI = "i\xCC\x87";

/// The lower case of a code point, by runs in ascending order.
inline uint32_t lower(std::span<const LowerRun> runs, uint32_t code_point) {
  const auto run = std::upper_bound(runs.begin(), runs.end(), code_point,
                                    [](uint32_t wanted, const LowerRun& r) { return wanted <= r.last; });
  if (run == runs.end() || code_point < run->first || (code_point - run->first) % run->step != 0)
    return code_point;
  return static_cast<uint32_t>(static_cast<int32_t>(code_point) + run->added);
}

}  // namespace megalith
