#include "libcore/plan/price/kernel_rates.h"

#include <algorithm>
#include <cmath>

namespace megalith {
namespace {

// "Belief": as in layer_price.cpp. "Guide": NVIDIA, Matrix Multiplication Background User's Guide.

/// If host and device take equally long, their time together is longer by this share, since they wait for
/// each other. Belief.
constexpr double kTogether = 0.06;
/// The share of each of two equal times in their sum.
constexpr double kEqualTimes = 0.5;
/// The number of 16-bit elements in 128 bytes: an A100 multiplies best in multiples of it. Guide.
constexpr double kAlignedElements = 64;
/// Sizes of the output tiles into which cuBLAS cuts a product: 128 x 256, the faster size, and 128 x 128.
/// Guide.
constexpr double kTileRows = 128, kTileColumns = 256, kSmallTileColumns = 128;
/// The rate of small tiles relative to large ones: they read their inputs more often. Belief.
constexpr double kSmallTile = 0.9;
/// Operations per element of a product and step of its depth: a multiplication and an addition.
constexpr double kMultiplyAdd = 2;

bool aligned(double size) {
  return std::fmod(size, kAlignedElements) == 0;
}

/// The share of the rate that `count` outputs of rows x columns keep when they are cut into tiles, which do
/// not fill all multiprocessors.
double wave_share(const KernelRates& r, double rows, double columns, double count) {
  if (r.cpu()) return 1;
  const auto share_of = [&](double tile_rows, double tile_columns) {
    const double tiles = count * (std::ceil(rows / tile_rows) * std::ceil(columns / tile_columns));
    const double ideal = count * (rows * columns) / (tile_rows * tile_columns) / r.d.multiprocessors;
    return ideal / std::ceil(tiles / r.d.multiprocessors);
  };
  const double best =
      std::max(share_of(kTileRows, kTileColumns), kSmallTile * share_of(kTileRows, kSmallTileColumns));
  return 1 / (1 - r.k.wave_weight + r.k.wave_weight / std::min(best, 1.0));
}

double depth_share(const KernelRates& r, double depth) {
  return depth / (depth + (r.cpu() ? r.d.half_depth : r.k.gemm_half_depth));
}

double point_seconds(const KernelRates& r, const ProfilePoint& point) {
  const double rate = r.flash_flops(static_cast<double>(point.head));
  switch (point.kind) {
    case ProfiledKind::kProduct:
      return r.product(static_cast<double>(point.rows), static_cast<double>(point.columns),
                       static_cast<double>(point.depth), r.product_flops());
    case ProfiledKind::kAttention:
      return point.flops / rate + r.gap();
    case ProfiledKind::kAttentionGradient:
      return point.flops / (rate * r.k.flash_backward) + r.gap();
    case ProfiledKind::kMemory:
      return r.stream(point.bytes);
    case ProfiledKind::kStart:
      return r.gap();
  }
  return r.gap();
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
  return smooth_max(kMultiplyAdd * rows * columns * depth / rate, bytes / bandwidth) + gap();
}

double KernelRates::grouped_product(double rows, double columns, double depth, double count) const {
  const double rate = product_flops() * wave_share(*this, rows, columns, count) * depth_share(*this, depth);
  const double bytes = e * (rows * depth + depth * columns + rows * columns);
  return smooth_max(count * kMultiplyAdd * rows * columns * depth / rate, count * bytes / bandwidth) + gap();
}

double KernelRates::flash_flops(double channels) const {
  if (cpu()) return peak * d.attention_share;
  const AttentionKernel kernel = p.software.attention;
  const auto coefficient = flash_coefficient(kernel);
  double rate = coefficient ? k.*coefficient : k.fused_rate;
  // On devices with 8-bit matrix instructions, the public flash kernels use the previous generation's
  // instructions.
  if (kernel != AttentionKernel::kFused && d.fp8_flops > 0) rate *= k.old_mma_rate;
  return rate * (p.half() ? d.half_flops : d.float_flops) * channels / (channels + k.head_half_depth);
}

double KernelRates::with_host(double device, double kernels) const {
  const double host = kernels * k.host_launch, sum = device + host;
  return cpu() ? device : std::max({device, host, kEqualTimes * (1 + kTogether) * sum});
}

double Coefficients::*flash_coefficient(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::kFlash1:
      return &Coefficients::flash1_rate;
    case AttentionKernel::kFlash2:
      return &Coefficients::flash2_rate;
    case AttentionKernel::kFused:
      return &Coefficients::fused_rate;
    default:
      return nullptr;
  }
}

PointPricer point_pricer(const PlanProblem& problem) {
  return [problem](std::span<const ProfilePoint> points, const DeviceRates& rates, std::span<double> out) {
    PlanProblem p = problem;
    p.machine.device = rates.device;
    p.coefficients = &rates.coefficients;
    const KernelRates r(p);
    for (size_t i = 0; i < points.size(); ++i) out[i] = point_seconds(r, points[i]);
  };
}

double smooth_max(double a, double b) {
  return std::sqrt(std::sqrt(a * a * a * a + b * b * b * b));
}

double sustained_flops(const PlanProblem& p) {
  const Accelerator& d = p.machine.device;
  const double peak = p.half() ? d.half_flops : d.float_flops;
  // A device with less power per operation than an A100 cannot hold its clock.
  const double power = power_share(d);
  if (d.multiprocessors == 0 || power <= 0) return peak;
  return peak * std::min(kMostSustained, p.coefficients->sustained_clock *
                                             std::pow(power, p.coefficients->clock_power_exponent));
}

}  // namespace megalith
