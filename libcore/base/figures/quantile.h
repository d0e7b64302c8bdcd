#pragma once

#include <vector>

namespace megalith {

/// The value at `share` of the way through the sorted values: share 0 gives the smallest, 0.5 the median, 1
/// the largest. A place between two values gives the nearer one; halfway, the larger one. `values` must not
/// be empty.
double quantile(std::vector<double> values, double share);

/// The median of a few values. For an even number of values: the mean of the two in the middle.
double median_of_few(std::vector<double> values);

}  // namespace megalith
