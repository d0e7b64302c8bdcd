#include "libcore/data/samples/blend_order.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "libcore/base/error.h"

namespace megalith {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kFlat = 48;        // a pool of this size is compared entry by entry
constexpr size_t kLeastDrawn = 16;  // entries that are looked at to choose a window
constexpr size_t kPerWindow = 10;   // entries of a pool for each sample of a window

/// The factor of the weights for sample `at`.
double factor_of(int64_t at) {
  return std::max(static_cast<double>(at), 1.0);
}

/// How far each entry is behind at that factor.
void compute_behind(std::span<const double> weight, std::span<const double> taken, double factor,
                    std::vector<double>& behind) {
  behind.resize(weight.size());
  for (size_t i = 0; i < weight.size(); ++i) behind[i] = weight[i] * factor - taken[i];
}

/// The largest value. Four running maxima, since one would wait for itself.
double largest(std::span<const double> values) {
  constexpr size_t kLanes = 4;
  double lanes[kLanes] = {-kInfinity, -kInfinity, -kInfinity, -kInfinity};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = std::max(lanes[lane], values[i + lane]);
  for (; i < values.size(); ++i) lanes[0] = std::max(lanes[0], values[i]);
  return std::max(std::max(lanes[0], lanes[1]), std::max(lanes[2], lanes[3]));
}

}  // namespace

/// Makes this pool the entries of another one with these numbers.
void BlendOrder::Pool::fill(const Pool& pool, std::span<const uint32_t> entries) {
  const size_t n = entries.size();
  weight.resize(n);
  taken.resize(n);
  first.resize(n);
  number.resize(n);
  above.assign(entries.begin(), entries.end());
  for (size_t i = 0; i < n; ++i) {
    weight[i] = pool.weight[entries[i]];
    taken[i] = pool.taken[entries[i]];
    first[i] = pool.first[entries[i]];
    number[i] = pool.number[entries[i]];
  }
}

BlendOrder::BlendOrder(std::span<const double> weights, std::span<const int64_t> sizes)
    : datasets_(weights.size()), pools_(1) {
  std::vector<int16_t> order(weights.size());
  std::iota(order.begin(), order.end(), int16_t{0});
  if (!sizes.empty()) std::erase_if(order, [&](int16_t i) { return sizes[static_cast<size_t>(i)] == 0; });
  const auto weight_of = [&](int16_t i) { return weights[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int16_t a, int16_t b) { return weight_of(a) > weight_of(b); });
  for (const int16_t i : order) {
    Pool& pool = pools_[0];
    if (classes_.empty() || pool.weight.back() != weight_of(i)) {
      pool.weight.push_back(weight_of(i));
      pool.taken.push_back(0);
      pool.first.push_back(i);
      pool.number.push_back(static_cast<uint32_t>(classes_.size()));
      classes_.push_back({.begin = static_cast<uint32_t>(members_.size())});
      if (!sizes.empty()) classes_.back().size = sizes[static_cast<size_t>(i)];
    }
    ++classes_.back().count;
    members_.push_back(i);
  }
}

BlendOrder BlendOrder::by_weights(std::span<const double> weights) {
  return {weights, {}};
}

BlendOrder BlendOrder::exhaustive(std::span<const int64_t> sizes) {
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  std::vector<double> weights;
  for (const int64_t size : sizes) weights.push_back(static_cast<double>(size) / static_cast<double>(total));
  BlendOrder order(weights, sizes);
  order.end_ = total;
  return order;
}

void BlendOrder::next(std::span<int16_t> dataset, std::span<int64_t> sample) {
  if (dataset.size() != sample.size() || (end_ >= 0 && end_ - at_ < static_cast<int64_t>(dataset.size())) ||
      (classes_.empty() && !sample.empty()))
    fail(ErrorKind::kInternal, "samples ", at_, " to ", at_ + static_cast<int64_t>(sample.size()),
         " of a blend of ", end_, " requested");
  Output out{dataset, sample};
  run(0, dataset.size(), out);
}

std::vector<int64_t> BlendOrder::taken() const {
  std::vector<int64_t> taken(datasets_, 0);
  for (const Class& one : classes_)
    for (uint32_t i = 0; i < one.count; ++i)
      taken[static_cast<size_t>(members_[one.begin + i])] = one.taken + (i < one.turn ? 1 : 0);
  return taken;
}

/// Takes the next `samples` samples from the classes of a pool, which are all that can be taken from.
void BlendOrder::run(size_t depth, size_t samples, Output& out) {
  while (samples > 0) {
    if (depth == 0) drop_used_up();
    if (pools_[depth].size() <= kFlat) return run_flat(pools_[depth], samples, out);
    const size_t window = narrow(depth, samples);
    // Where narrowing gains little, the entries are nearly equal, and it would not gain more a level deeper.
    if (pools_[depth + 1].size() > pools_[depth].size() / 4 * 3)
      run_flat(pools_[depth + 1], window, out);
    else
      run(depth + 1, window, out);
    give_back(pools_[depth + 1], pools_[depth]);
    samples -= window;
  }
}

void BlendOrder::run_flat(Pool& pool, size_t samples, Output& out) {
  for (; samples > 0; --samples) {
    compute_behind(pool.weight, pool.taken, factor_of(at_), behind_);
    const double most = largest(behind_);
    size_t best = 0;
    int16_t first = std::numeric_limits<int16_t>::max();
    for (size_t i = 0; i < behind_.size(); ++i) {
      const bool better = behind_[i] == most && pool.first[i] < first;
      best = better ? i : best;
      first = better ? pool.first[i] : first;
    }
    take(pool, best, out);
  }
}

void BlendOrder::take(Pool& pool, size_t entry, Output& out) {
  Class& one = classes_[pool.number[entry]];
  out.dataset[out.done] = members_[one.begin + one.turn];
  out.sample[out.done++] = one.taken;
  ++at_;
  if (++one.turn == one.count) {
    one.turn = 0;
    ++one.taken;
    pool.taken[entry] = one.taken == one.size ? kInfinity : pool.taken[entry] + 1;
  }
  pool.first[entry] = members_[one.begin + one.turn];
}

/// A value that about one entry of the pool in kPerWindow reaches now, as a few of the entries tell.
double BlendOrder::draw_bound(const Pool& pool) {
  const double now = factor_of(at_);
  const size_t step = std::max<size_t>(1, pool.size() / std::max(kLeastDrawn, pool.size() / 64));
  behind_.clear();
  for (size_t i = 0; i < pool.size(); i += step) behind_.push_back(pool.weight[i] * now - pool.taken[i]);
  const auto place = behind_.begin() + static_cast<std::ptrdiff_t>(behind_.size() / kPerWindow);
  std::nth_element(behind_.begin(), place, behind_.end(), std::greater<>());
  if (*place != -kInfinity) return *place;
  compute_behind(pool.weight, pool.taken, now, behind_);  // most of these are used up
  return largest(behind_);
}

/// Chooses a window of at most `samples` samples, and fills the pool below with all entries of this one that
/// can be taken from in it. Returns the window's length. `window` entries reach `bound` now. Before the last
/// sample of the window one of them is always left, and the least of their weights says how it has risen. An
/// entry below that line at both ends of the window is below it throughout; `rounding` is more than what the
/// rounding of all doubles that are compared can change.
size_t BlendOrder::narrow(size_t depth, size_t samples) {
  if (pools_.size() < depth + 2) pools_.resize(depth + 2);
  const Pool& pool = pools_[depth];
  const double *const weight = pool.weight.data(), *const taken = pool.taken.data();
  const double now = factor_of(at_), bound = draw_bound(pool);
  const auto rounding_until = [&](double factor) {
    return 16 * std::numeric_limits<double>::epsilon() * (weight[0] * factor + 1);
  };
  const double near = bound - rounding_until(factor_of(at_ + static_cast<int64_t>(samples)));
  const size_t near_now = select(pool.size(), [=](size_t i) { return weight[i] * now - taken[i] >= near; });
  size_t window = 0;
  double least = kInfinity;
  for (size_t k = 0; k < near_now; ++k) {
    const uint32_t i = selected_[k];
    window += weight[i] * now - taken[i] >= bound ? 1 : 0;
    least = std::min(least, weight[i]);
  }
  window = std::min(window, samples);

  const double end = factor_of(at_ + static_cast<int64_t>(window) - 1);
  // so low that all entries that are near the bound now reach it, too
  const double last = bound + least * (end - now) - 2 * (bound - near);
  const size_t chosen = select(pool.size(), [=](size_t i) { return weight[i] * end - taken[i] >= last; });
  pools_[depth + 1].fill(pool, std::span(selected_).first(chosen));
  return window;
}

/// Writes the numbers below n that `chosen` chooses to the beginning of selected_; returns how many. Without
/// a branch, which would be mispredicted for each of them.
template <class Chosen>
size_t BlendOrder::select(size_t n, const Chosen& chosen) {
  if (selected_.size() <= n) selected_.resize(n + 1);
  uint32_t* const selected = selected_.data();
  size_t count = 0;
  for (size_t i = 0; i < n; ++i) {
    selected[count] = static_cast<uint32_t>(i);
    count += chosen(i) ? 1 : 0;
  }
  return count;
}

void BlendOrder::give_back(const Pool& narrowed, Pool& pool) const {
  for (size_t i = 0; i < narrowed.size(); ++i) {
    pool.taken[narrowed.above[i]] = narrowed.taken[i];
    pool.first[narrowed.above[i]] = narrowed.first[i];
  }
}

/// Removes the classes that are used up from the topmost pool, when there are many of them.
void BlendOrder::drop_used_up() {
  Pool& pool = pools_[0];
  if (end_ < 0) return;
  const auto gone = std::count(pool.taken.begin(), pool.taken.end(), kInfinity);
  if (static_cast<size_t>(gone) * 2 < pool.size() || gone == 0) return;
  size_t to = 0;
  for (size_t i = 0; i < pool.size(); ++i) {
    if (pool.taken[i] == kInfinity) continue;
    pool.weight[to] = pool.weight[i];
    pool.taken[to] = pool.taken[i];
    pool.first[to] = pool.first[i];
    pool.number[to++] = pool.number[i];
  }
  pool.weight.resize(to);
  pool.taken.resize(to);
  pool.first.resize(to);
  pool.number.resize(to);
}

}  // namespace megalith
