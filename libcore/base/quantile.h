#pragma once

#include <vector>

namespace megalith {

/// The value that stands at `share` of the way through the sorted values: 0 is the least, 0.5 the median, 1
/// the greatest. Between two values it is the nearer one, halfway the greater. `values` is not empty.
double quantile(std::vector<double> values, double share);

/// The median of few values: of an even number the mean of the two in the middle.
double median_of_few(std::vector<double> values);

}  // namespace megalith
