#include "libcore/data/samples/split.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

/// The numbers in the text: its maximal runs of digits and points, as in Megatron's regular expression.
std::vector<double> numbers_of(std::string_view split) {
  std::vector<double> numbers;
  for (size_t at = split.find_first_of(".0123456789"); at != std::string_view::npos;
       at = split.find_first_of(".0123456789", at)) {
    const size_t end = std::min(split.find_first_not_of(".0123456789", at), split.size());
    const auto number = parse_double(split.substr(at, end - at));
    if (!number)
      fail(ErrorKind::kUsage, "--split ", quote(split), ": ", quote(split.substr(at, end - at)),
           " is not a number");
    numbers.push_back(*number);
    at = end;
  }
  return numbers;
}

}  // namespace

std::array<std::optional<SplitBounds>, 3> split_bounds(std::string_view split) {
  std::vector<double> weights = numbers_of(split);
  if (weights.size() > 3)
    fail(ErrorKind::kUsage, "--split ", quote(split), " has ", weights.size(),
         " numbers; wanted at most three, the weights of train, valid and test");
  weights.resize(3, 0.0);
  const double sum = (weights[0] + weights[1]) + weights[2];
  if (!(sum > 0) || !std::isfinite(sum))
    fail(ErrorKind::kUsage, "--split ", quote(split), ": the weights add up to ", sum,
         "; wanted more than 0");
  std::array<std::optional<SplitBounds>, 3> bounds;
  double begin = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double end = begin + weights[i] / sum;
    if (end > begin) bounds[i] = {begin, end};
    begin = end;
  }
  return bounds;
}

SequenceRange sequences_between(const SplitBounds& bounds, int64_t sequences) {
  const auto n = static_cast<double>(sequences);
  return {static_cast<int64_t>(std::nearbyint(bounds.begin * n)),
          static_cast<int64_t>(std::nearbyint(bounds.end * n))};
}

std::array<std::optional<SequenceRange>, 3> split_sequences(std::string_view split, int64_t sequences) {
  std::array<std::optional<SequenceRange>, 3> ranges;
  const auto bounds = split_bounds(split);
  for (size_t i = 0; i < 3; ++i)
    if (bounds[i]) ranges[i] = sequences_between(*bounds[i], sequences);
  return ranges;
}

std::string split_with_all_parts(std::string_view split, int64_t sequences) {
  constexpr int64_t kPart = 20;  // a part that had too little gets one of this many
  const auto ranges = split_sequences(split, sequences);
  const int64_t part = std::max<int64_t>(1, sequences / kPart);
  const int64_t valid = ranges[1] ? part : 0, test = ranges[2] ? part : 0;
  if (!ranges[0] || sequences <= valid + test) return {};
  return concat(sequences - valid - test, ',', valid, ',', test);
}

}  // namespace megalith
