#include "libcore/plan/profile/rate_fit.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"

namespace megalith {
namespace {

constexpr double kHuber = 0.15;   // beyond this error a point pulls with constant force
constexpr double kPull = 1e-4;    // weight of the pull of a rate towards its previous value
constexpr double kFinest = 1e-3;  // smallest step of a rate's logarithm: the search ends there
constexpr double kCoarsest = 0.4;
constexpr double kNeighbour = 0.05;  // first step when the start is a fit to nearly the same points

double huber(double error) {
  const double size = std::abs(error);
  return size <= kHuber ? 0.5 * size * size : kHuber * (size - 0.5 * kHuber);
}

FittedRate coefficient_rate(double Coefficients::*member, bool firm_low = false) {
  for (const CoefficientInfo& info : coefficient_table())
    if (info.member == member)
      return {.name = info.name,
              .unit = info.unit,
              .coefficient = member,
              .low = info.low,
              .high = info.high,
              .firm_low = firm_low};
  fail(ErrorKind::kInternal, "a coefficient without a row");
}

std::vector<FittedRate> processor_rates(const DeviceRates& before, bool half) {
  constexpr double kFaster = 10, kSlower = 100;  // the first measurement may have been slowed by other load
  const auto around = [&](const char* name, const char* unit, double Accelerator::*member) {
    const double now = before.device.*member;
    return FittedRate{.name = name,
                      .unit = unit,
                      .device = member,
                      .low = now / kSlower,
                      .high = now * kFaster,
                      .firm_low = true,
                      .firm_high = true};
  };
  return {
      around("matrix rate", "FLOP/s", half ? &Accelerator::half_flops : &Accelerator::float_flops),
      around("memory bandwidth", "B/s", &Accelerator::memory_bandwidth),
      {.name = "half depth", .unit = "elements", .device = &Accelerator::half_depth, .low = 0, .high = 1024},
      {.name = "attention's rate",
       .unit = "of matrix rate",
       .device = &Accelerator::attention_share,
       .low = 0.01,
       .high = 1},
      {.name = "start of an op", .unit = "s", .device = &Accelerator::op_start, .low = 1e-8, .high = 1e-3},
      coefficient_rate(&Coefficients::flash_backward)};
}

FittedRate clock_rate(const DeviceRates& before) {
  FittedRate rate = coefficient_rate(&Coefficients::sustained_clock, true);
  const double held = std::pow(power_share(before.device), before.coefficients.clock_power_exponent);
  if (held > 0) rate.high = std::max(rate.high, kMostSustained / held);
  return rate;
}

/// The fold of each point; points with equal keys have the same fold. Each fit leaves out one fold.
std::vector<size_t> folds_of(std::span<const ProfilePoint> points) {
  std::map<PointKey, size_t> numbers;
  std::vector<size_t> folds;
  for (const ProfilePoint& point : points)
    folds.push_back(numbers.emplace(key_of(point), numbers.size()).first->second % kMostFits);
  return folds;
}

/// Minimises the loss over the logarithms of the rates: tries a step up and down each of them, and halves the
/// steps when none helps.
class Search {
 public:
  Search(std::span<const ProfilePoint> points, const DeviceRates& before, std::span<const FittedRate> rates,
         const PointPricer& price)
      : points_(points),
        before_(before),
        rates_(rates),
        price_(price),
        folds_(folds_of(points)),
        seconds_(points.size()) {
    for (const ProfilePoint& point : points) ++count_[point.kind];
  }

  static constexpr size_t kAll = kMostFits;
  const std::vector<size_t>& folds() const { return folds_; }

  /// `without`: the fold whose points are left out; kAll: no fold.
  DeviceRates from(const DeviceRates& start, double step, size_t without) {
    DeviceRates best = start;
    double min_loss = loss(best, without);
    for (; step > kFinest; step /= 2)
      for (bool better = true; better;) {
        better = false;
        for (const FittedRate& rate : rates_)
          for (const double way : {step, -step}) {
            DeviceRates tried = best;
            move(rate, tried, way);
            const double now = loss(tried, without);
            if (now >= min_loss - 1e-12) continue;
            min_loss = now;
            best = tried;
            better = true;
            break;
          }
      }
    return best;
  }

 private:
  /// The offset added before taking the logarithm of a rate that may be 0.
  static double shift(const FittedRate& rate) { return rate.low > 0 ? 0 : rate.high / 50; }
  static double place(const FittedRate& rate, const DeviceRates& at) {
    return std::log(rate.of(at) + shift(rate));
  }
  static void move(const FittedRate& rate, DeviceRates& at, double by) {
    const double moved = std::exp(place(rate, at) + by) - shift(rate);
    rate.of(at) = std::clamp(moved, rate.low, rate.high);
  }
  double loss(const DeviceRates& at, size_t without) {
    price_(points_, at, seconds_);
    double sum = 0;
    for (size_t i = 0; i < points_.size(); ++i)
      if (folds_[i] != without)
        sum += huber(std::log(seconds_[i] / points_[i].seconds)) / count_.at(points_[i].kind);
    for (const FittedRate& rate : rates_) {
      const double moved = place(rate, at) - place(rate, before_);
      sum += kPull * moved * moved;
    }
    return sum;
  }

  std::span<const ProfilePoint> points_;
  const DeviceRates& before_;
  std::span<const FittedRate> rates_;
  const PointPricer& price_;
  std::vector<size_t> folds_;
  std::vector<double> seconds_;
  std::map<ProfiledKind, double> count_;
};

}  // namespace

std::vector<FittedRate> fitted_rates(const DeviceRates& before, bool half, double Coefficients::*attention) {
  if (before.device.multiprocessors == 0) return processor_rates(before, half);
  std::vector<FittedRate> rates = {clock_rate(before), coefficient_rate(&Coefficients::memory_rate, true),
                                   coefficient_rate(&Coefficients::gemm_half_depth),
                                   coefficient_rate(&Coefficients::wave_weight),
                                   coefficient_rate(&Coefficients::kernel_gap)};
  if (attention)
    for (double Coefficients::*member :
         {attention, &Coefficients::head_half_depth, &Coefficients::flash_backward})
      rates.push_back(coefficient_rate(member));
  return rates;
}

PointErrors errors_of(std::span<const ProfilePoint> points, std::span<const double> predicted) {
  PointErrors errors;
  std::map<ProfiledKind, double> count;
  for (size_t i = 0; i < points.size(); ++i) {
    errors.kinds[points[i].kind] += std::abs(std::log(predicted[i] / points[i].seconds));
    ++count[points[i].kind];
  }
  for (auto& [kind, sum] : errors.kinds) {
    sum /= count[kind];
    errors.mean += sum / static_cast<double>(errors.kinds.size());
    sum = std::expm1(sum);
  }
  errors.mean = std::expm1(errors.mean);
  return errors;
}

DeviceRates fit_rates(std::span<const ProfilePoint> points, const DeviceRates& before,
                      std::span<const FittedRate> rates, const PointPricer& price) {
  return Search(points, before, rates, price).from(before, kCoarsest, Search::kAll);
}

std::vector<double> left_out(std::span<const ProfilePoint> points, const DeviceRates& before,
                             std::span<const FittedRate> rates, const PointPricer& price) {
  Search search(points, before, rates, price);
  const DeviceRates all = search.from(before, kCoarsest, Search::kAll);
  const std::vector<size_t>& folds = search.folds();
  std::vector<double> seconds(points.size()), out(points.size());
  for (size_t fold = 0; fold < kMostFits; ++fold) {
    if (std::find(folds.begin(), folds.end(), fold) == folds.end()) break;  // folds are numbered from 0
    price(points, search.from(all, kNeighbour, fold), seconds);
    for (size_t i = 0; i < points.size(); ++i)
      if (folds[i] == fold) out[i] = seconds[i];
  }
  return out;
}

}  // namespace megalith
