#pragma once

#include <vector>

namespace megalith {

/// The value at `share` of the way through the sorted values: 0 is the smallest, 0.5 the median, 1 the
/// largest. Between two values it is the nearer one, halfway the larger. `values` must not be empty.
double quantile(std::vector<double> values, double share);

/// The median of a few values; for an even number the mean of the two in the middle.
double median_of_few(std::vector<double> values);

}  // namespace megalith
