#include "libcore/train/log/straggler.h"

#include <algorithm>
#include <numeric>

#include "libcore/base/figures/quantile.h"
#include "libcore/base/text.h"
#include "libcore/parallel/exchange.h"

namespace megalith {

std::string straggler_text(const std::vector<double>& ms) {
  std::vector<size_t> order(ms.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return ms[a] < ms[b]; });
  const double median = median_of_few(ms);
  const double max_ms = ms[order.back()];
  const auto figure = [](double value) { return format_fixed(value, 1); };
  return concat(" > stages took ", figure(ms[order.front()]), " ms a step on rank ", order.front(), ", ",
                figure(median), " at the median, ", figure(max_ms), " on rank ", order.back(), " (",
                format_fixed(median > 0 ? max_ms / median : 1, 2), " of the median)");
}

std::string StragglerReport::text(Communicator& world) {
  const double mine = steps_ > 0 ? seconds_ * 1e3 / static_cast<double>(steps_) : 0;
  seconds_ = 0;
  steps_ = 0;
  return straggler_text(exchange_values(world, mine));
}

}  // namespace megalith
