#include "libcore/base/figures/quantile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace megalith {
namespace {

/// The value that would be at index `place` if the values were sorted.
double at_place(std::vector<double>& values, size_t place) {
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  return at_place(values, static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1))));
}

double median_of_few(std::vector<double> values) {
  return (at_place(values, (values.size() - 1) / 2) + at_place(values, values.size() / 2)) / 2;
}

}  // namespace megalith
