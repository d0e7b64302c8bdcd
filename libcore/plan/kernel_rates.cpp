#include "libcore/plan/kernel_rates.h"

#include <algorithm>
#include <cmath>

namespace megalith {
namespace {

/// Host and device wait for each other where they take as long: then the longer of both is exceeded by so
/// much.
constexpr double kTogether = 0.06;

bool aligned(double size) {
  return std::fmod(size, 64) == 0;
}

/// How much slower than their average multiprocessor `count` outputs of rows x columns are when they are cut
/// into tiles of 128 x 256 or 128 x 128.
double wave_share(const KernelRates& r, double rows, double columns, double count) {
  if (r.cpu()) return 1;
  const auto share_of = [&](double tile_rows, double tile_columns) {
    const double tiles = count * (std::ceil(rows / tile_rows) * std::ceil(columns / tile_columns));
    const double ideal = count * (rows * columns) / (tile_rows * tile_columns) / r.d.multiprocessors;
    return ideal / std::ceil(tiles / r.d.multiprocessors);
  };
  constexpr double kSmallTile = 0.9;  // of the rate of the large one: less reuse
  const double best = std::max(share_of(128, 256), kSmallTile * share_of(128, 128));
  return 1 / (1 - r.k.wave_weight + r.k.wave_weight / std::min(best, 1.0));
}

double depth_share(const KernelRates& r, double depth) {
  return r.cpu() ? 1 : depth / (depth + r.k.gemm_half_depth);
}

}  // namespace

KernelRates::KernelRates(const PlanProblem& problem)
    : p(problem),
      k(*problem.coefficients),
      d(problem.machine.device),
      e(problem.element()),
      peak(sustained_flops(problem)),
      bandwidth(k.memory_rate * d.memory_bandwidth) {}

bool KernelRates::narrow() const {
  return p.precision == Precision::kFp8 || p.precision == Precision::kMxfp8 ||
         p.precision == Precision::kNvfp4;
}

double KernelRates::product_flops() const {
  const double narrow_peak = p.precision == Precision::kNvfp4 && d.fp4_flops > 0 ? d.fp4_flops : d.fp8_flops;
  if (!narrow() || narrow_peak <= 0) return peak;
  return peak * (1 + k.narrow_rate * (narrow_peak / d.half_flops - 1));
}

double KernelRates::product(double rows, double columns, double depth, double flops) const {
  if (rows * columns * depth == 0) return 0;
  double rate = flops * wave_share(*this, rows, columns, 1) * depth_share(*this, depth);
  if (!cpu() && !(aligned(rows) && aligned(columns) && aligned(depth))) rate *= k.misaligned_rate;
  const double bytes = e * (rows * depth + depth * columns + rows * columns);
  return smooth_max(2 * rows * columns * depth / rate, bytes / bandwidth) + gap();
}

double KernelRates::grouped_product(double rows, double columns, double depth, double count) const {
  const double rate = product_flops() * wave_share(*this, rows, columns, count) * depth_share(*this, depth);
  const double bytes = e * (rows * depth + depth * columns + rows * columns);
  return smooth_max(count * 2 * rows * columns * depth / rate, count * bytes / bandwidth) + gap();
}

double KernelRates::with_host(double device, double kernels) const {
  const double host = kernels * k.host_launch, sum = device + host;
  return cpu() ? device : std::max({device, host, 0.5 * (1 + kTogether) * sum});
}

double smooth_max(double a, double b) {
  return std::sqrt(std::sqrt(a * a * a * a + b * b * b * b));
}

double sustained_flops(const PlanProblem& p) {
  const Accelerator& d = p.machine.device;
  const double peak = p.half() ? d.half_flops : d.float_flops;
  if (d.multiprocessors == 0 || d.watts <= 0 || d.half_flops <= 0) return peak;
  // A device that has less power for each operation than an A100 cannot hold its clock.
  constexpr double kReference = 400 / 312e12;  // W s / FLOP
  const double power = d.watts / d.half_flops / kReference;
  return peak * std::min(0.98, p.coefficients->sustained_clock *
                                   std::pow(power, p.coefficients->clock_power_exponent));
}

}  // namespace megalith
