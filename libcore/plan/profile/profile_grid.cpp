#include "libcore/plan/profile/profile_grid.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "libcore/base/figures/quantile.h"

namespace megalith {
namespace {

/// Seconds of a sample: long compared with the clock's resolution and a synchronisation.
constexpr double kSampleSeconds = 2e-3;
constexpr double kFirstShare = 0.4;      // share of the time after which no further point is started
constexpr double kLargestShare = 0.005;  // largest share of the time that one call may take
constexpr double kDoubt = 3;             // factor by which the fastest calls so far may have been too slow
constexpr double kSteady = 0.01;         // error of a median that counts as steady
constexpr double kLeastLargest = 0.05;   // seconds that any call may take: a busy machine slows all calls
constexpr size_t kFewestOfSteady = 5;
constexpr size_t kMostSamples = 50;
constexpr size_t kKinds = 5;  // number of ProfiledKind's values

void add_products(int64_t tokens, int64_t out, int64_t in, std::vector<ProfilePoint>& list) {
  const auto add = [&](const char* form, int64_t rows, int64_t columns, int64_t depth) {
    ProfilePoint point{.kind = ProfiledKind::kProduct, .op = form};
    point.rows = rows;
    point.columns = columns;
    point.depth = depth;
    point.flops = 2.0 * static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth);
    list.push_back(point);
  };
  add("forward", tokens, out, in);
  add("input-gradient", tokens, in, out);
  add("weight-gradient", out, in, tokens);
}

std::vector<ProfilePoint> products() {
  std::vector<ProfilePoint> list;
  for (const int64_t tokens : {128, 512, 2048, 8192})
    for (const int64_t width : {128, 256, 512, 1024, 2048, 4096, 8192}) {
      add_products(tokens, width, width, list);
      add_products(tokens, 4 * width, width, list);
      add_products(tokens, width, 4 * width, list);
    }
  return list;
}

std::vector<ProfilePoint> attentions(int64_t heads, bool forward) {
  std::vector<ProfilePoint> list;
  for (const int64_t sequence : {128, 256, 512, 1024, 2048, 4096, 8192})
    for (const int64_t head : {32, 64, 128}) {
      ProfilePoint point{.kind = forward ? ProfiledKind::kAttention : ProfiledKind::kAttentionGradient,
                         .op = forward ? "attention" : "attention_grad"};
      point.sequence = sequence;
      point.heads = heads;
      point.head = head;
      // Two products over the pairs of positions that a causal mask leaves; the gradient has five.
      const double pairs = 0.5 * static_cast<double>(sequence) * static_cast<double>(sequence + 1);
      point.flops = (forward ? 4 : 10) * pairs * static_cast<double>(heads * head);
      list.push_back(point);
    }
  return list;
}

void add_element_ops(ProfiledKind kind, int64_t rows, int64_t columns, std::vector<ProfilePoint>& list) {
  for (const std::string_view op : ops_of(kind))
    list.push_back({.kind = kind, .op = std::string(op), .rows = rows, .columns = columns});
}

std::vector<ProfilePoint> memory_ops() {
  std::vector<ProfilePoint> list;
  for (const int64_t rows : {512, 2048, 8192})
    for (const int64_t columns : {256, 1024, 2048})
      add_element_ops(ProfiledKind::kMemory, rows, columns, list);
  return list;
}

std::vector<ProfilePoint> starts() {
  std::vector<ProfilePoint> list;
  add_element_ops(ProfiledKind::kStart, 1, 64, list);
  return list;
}

double work_of(const ProfilePoint& point) {
  return point.flops > 0 ? point.flops : static_cast<double>(point.rows * point.columns);
}

/// A point being measured.
struct Probe {
  ProfilePoint point;
  bool tried = false;
  int64_t times = 1;  // calls per sample
  std::vector<double> samples = {};

  bool measured() const { return static_cast<int64_t>(samples.size()) >= kLeastSamples; }
  double median() const { return quantile(samples, 0.5); }
  double spread() const { return 0.5 * (quantile(samples, 0.75) - quantile(samples, 0.25)) / median(); }
  bool steady() const {
    const auto count = static_cast<double>(samples.size());
    return samples.size() >= kMostSamples ||
           (samples.size() >= kFewestOfSteady && spread() / std::sqrt(count) < kSteady);
  }
};

class Measuring {
 public:
  Measuring(double seconds, size_t points, const Probing& with)
      : seconds_(seconds),
        sample_(kFirstShare * seconds / (3.0 * static_cast<double>(points))),
        with_(with) {}

  bool first_is_over() const { return begun_ >= kLeastPoints && with_.clock() >= kFirstShare * seconds_; }
  bool over() const { return with_.clock() >= seconds_; }

  /// Warms up and takes the first sample; takes none if a call of the point would be too long.
  void begin(Probe& probe) {
    const auto kind = static_cast<size_t>(probe.point.kind);
    const double most = std::max(kLargestShare * seconds_, kLeastLargest);
    if (best_rate_[kind] > 0 && work_of(probe.point) / best_rate_[kind] > kDoubt * most) return;
    probe.tried = true;
    with_.seconds_of(probe.point, 1);
    const double one = with_.seconds_of(probe.point, 1);
    best_rate_[kind] = std::max(best_rate_[kind], work_of(probe.point) / one);
    if (one > most) return;
    probe.times =
        std::clamp<int64_t>(static_cast<int64_t>(std::min(kSampleSeconds, sample_) / one), 1, 10000);
    sample(probe);
    ++begun_;
  }
  void sample(Probe& probe) {
    probe.samples.push_back(with_.seconds_of(probe.point, probe.times) / static_cast<double>(probe.times));
    with_.progress(with_.clock(), begun_);
  }

 private:
  double seconds_, sample_;  // for all points; for one sample, in which short ops are repeated
  const Probing& with_;
  double best_rate_[kKinds] = {};  // highest work per second so far, by kind
  size_t begun_ = 0;
};

}  // namespace

std::vector<size_t> spread_order(size_t count) {
  const size_t whole = std::bit_ceil(std::max<size_t>(count, 1));
  std::vector<size_t> order;
  for (size_t i = 0; i < whole; ++i) {
    size_t reversed = 0;
    for (size_t bit = 1, mirror = whole / 2; bit < whole; bit *= 2, mirror /= 2)
      if (i & bit) reversed |= mirror;
    if (reversed < count) order.push_back(reversed);
  }
  return order;
}

std::vector<ProfilePoint> profile_grid(int64_t heads) {
  struct Placed {
    double at;
    ProfilePoint point;
  };
  std::vector<Placed> placed;
  const auto add = [&](std::vector<ProfilePoint> list) {
    std::stable_sort(list.begin(), list.end(),
                     [](const auto& a, const auto& b) { return work_of(a) < work_of(b); });
    // Kinds with fewer points come sooner, so that a coarse grid has points of each kind.
    const double step = 1 / std::sqrt(static_cast<double>(list.size()));
    double at = 0;
    for (const size_t i : spread_order(list.size())) {
      placed.push_back({at, list[i]});
      at += step;
    }
  };
  add(products());
  add(attentions(heads, true));
  add(attentions(heads, false));
  add(memory_ops());
  add(starts());
  std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  std::vector<ProfilePoint> grid;
  for (Placed& one : placed) grid.push_back(std::move(one.point));
  return grid;
}

std::vector<ProfilePoint> measure_grid(const std::vector<ProfilePoint>& grid, double seconds,
                                       const Probing& with) {
  std::vector<Probe> probes;
  for (const ProfilePoint& point : grid) probes.push_back({.point = point});
  Measuring measuring(seconds, grid.size(), with);
  // The second pass judges points by better rates than those of small points.
  for (int pass = 0; pass < 2; ++pass)
    for (Probe& probe : probes)
      if (!probe.tried && !measuring.first_is_over()) measuring.begin(probe);
  bool unsteady = true;
  for (int64_t samples = 1; unsteady; ++samples) {  // number of samples taken of each point
    unsteady = false;
    for (Probe& probe : probes) {
      if (probe.samples.empty() || probe.steady()) continue;
      if (samples >= kLeastSamples && measuring.over()) break;
      measuring.sample(probe);
      unsteady = true;
    }
  }
  std::vector<ProfilePoint> measured;
  for (Probe& probe : probes) {
    if (!probe.measured()) continue;
    probe.point.seconds = probe.median();
    probe.point.spread = probe.spread();
    probe.point.samples = static_cast<int64_t>(probe.samples.size());
    measured.push_back(std::move(probe.point));
  }
  return measured;
}

}  // namespace megalith
