#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "tests/ops/case_parts.h"

namespace megalith::test {
namespace {

std::vector<Outcome> run_sum_squares(Bed& bed, DType dtype, int64_t n) {
  Values x = random_values(n, 1);
  const View out = bed.put(DType::kF64, {1}, Values{0.5});
  run(bed.stream(), SumSquares{.out = out, .x = bed.put(dtype, {n}, x)});
  return {{"out", bed.get(out), {inner(x, x) + 0.5}, 1e-13}};
}

constexpr double kLr = 1e-2, kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8, kDecay = 0.1, kScale = 0.25;

View step_scalars(Bed& bed, int64_t step, bool skip) {
  Values scalars(StepScalar::kCount,
                 std::numeric_limits<double>::quiet_NaN());  // AdamW must not read the other scalars
  scalars[StepScalar::kGradScale] = kScale;
  scalars[StepScalar::kLearningRate] = kLr;
  scalars[StepScalar::kBiasCorrection1] = 1 - std::pow(kBeta1, step);
  scalars[StepScalar::kBiasCorrection2] = 1 - std::pow(kBeta2, step);
  scalars[StepScalar::kSkip] = skip ? 1 : 0;
  return bed.put(DType::kF64, {StepScalar::kCount}, scalars);
}

/// Compares three steps with the rule of torch.optim.AdamW in fp64.
std::vector<Outcome> run_adamw(Bed& bed, int64_t n, std::optional<DType> value) {
  Values p = random_values(n, 1), m(static_cast<size_t>(n), 0.0), v = m;
  const View master = bed.put(DType::kF32, {n}, p), m_view = bed.put(DType::kF32, {n}, m);
  const View v_view = bed.put(DType::kF32, {n}, v);
  const View value_view = value ? bed.empty(*value, {n}) : View{};
  for (int64_t step = 1; step <= 3; ++step) {
    Values grad = random_values(n, static_cast<uint32_t>(10 + step));
    run(bed.stream(), AdamW{.master = master,
                            .m = m_view,
                            .v = v_view,
                            .grad = bed.put(DType::kF32, {n}, grad),
                            .value = value_view,
                            .scalars = step_scalars(bed, step, false),
                            .beta1 = kBeta1,
                            .beta2 = kBeta2,
                            .eps = kEps,
                            .weight_decay = kDecay});
    for (size_t i = 0; i < p.size(); ++i) {
      const double g = grad[i] * kScale;
      m[i] = kBeta1 * m[i] + (1 - kBeta1) * g;
      v[i] = kBeta2 * v[i] + (1 - kBeta2) * g * g;
      const double root = std::sqrt(v[i] / (1 - std::pow(kBeta2, step))) + kEps;
      p[i] = p[i] * (1 - kLr * kDecay) - kLr * m[i] / (1 - std::pow(kBeta1, step)) / root;
    }
  }
  std::vector<Outcome> outcomes = {{"master", bed.get(master), p, kFp32},
                                   {"m", bed.get(m_view), m, kFp32},
                                   {"v", bed.get(v_view), v, kFp32}};
  if (value) outcomes.push_back({"value", bed.get(value_view), p, tolerance_of(*value)});
  return outcomes;
}

/// Compares steps with a first moment in bf16 with the same rule. The moment is rounded to nearest after the
/// master has used it, so each step begins with the moment that the one before left.
std::vector<Outcome> run_narrow_adamw(Bed& bed, int64_t n, std::optional<DType> value) {
  Values p = random_values(n, 1), v(static_cast<size_t>(n), 0.0);
  const View master = bed.put(DType::kF32, {n}, p), v_view = bed.put(DType::kF32, {n}, v),
             m_view = bed.put(DType::kBf16, {n}, random_values(n, 2, 0.1)),
             value_view = value ? bed.empty(*value, {n}) : View{};
  std::vector<Outcome> outcomes;
  for (int64_t step = 1; step <= 3; ++step) {
    Values grad = random_values(n, static_cast<uint32_t>(10 + step)), m = bed.get(m_view);
    run(bed.stream(), AdamW{.master = master,
                            .m = m_view,
                            .v = v_view,
                            .grad = bed.put(DType::kF32, {n}, grad),
                            .value = value_view,
                            .scalars = step_scalars(bed, step, false),
                            .beta1 = kBeta1,
                            .beta2 = kBeta2,
                            .eps = kEps,
                            .weight_decay = kDecay});
    for (size_t i = 0; i < p.size(); ++i) {
      const double g = grad[i] * kScale;
      m[i] = kBeta1 * m[i] + (1 - kBeta1) * g;
      v[i] = kBeta2 * v[i] + (1 - kBeta2) * g * g;
      const double root = std::sqrt(v[i] / (1 - std::pow(kBeta2, step))) + kEps;
      p[i] = p[i] * (1 - kLr * kDecay) - kLr * m[i] / (1 - std::pow(kBeta1, step)) / root;
    }
    outcomes.push_back({concat("m ", step), bed.get(m_view), m, kBf16});
  }
  outcomes.push_back({"master", bed.get(master), p, kFp32});
  outcomes.push_back({"v", bed.get(v_view), v, kFp32});
  if (value) outcomes.push_back({"value", bed.get(value_view), p, tolerance_of(*value)});
  return outcomes;
}

/// A skipped step, whose gradients are not finite, leaves every bit unchanged.
std::vector<Outcome> run_skipped_adamw(Bed& bed, int64_t n) {
  Values p = random_values(n, 1), m = random_values(n, 2), v = random_values(n, 3),
         rounded = random_values(n, 4);
  const View master = bed.put(DType::kF32, {n}, p), m_view = bed.put(DType::kF32, {n}, m);
  const View v_view = bed.put(DType::kF32, {n}, v), value = bed.put(DType::kBf16, {n}, rounded);
  run(bed.stream(), AdamW{.master = master,
                          .m = m_view,
                          .v = v_view,
                          .grad = bed.empty(DType::kF32, {n}),
                          .value = value,
                          .scalars = step_scalars(bed, 1, true),
                          .beta1 = kBeta1,
                          .beta2 = kBeta2,
                          .eps = kEps,
                          .weight_decay = kDecay});
  return {{"master", bed.get(master), p, 0},
          {"m", bed.get(m_view), m, 0},
          {"v", bed.get(v_view), v, 0},
          {"value", bed.get(value), rounded, 0}};
}

}  // namespace

void add_optimizer_cases(std::vector<OpCase>& cases, const Types& types) {
  for (const int64_t n : {1, 17, 4097, 100000}) {
    cases.push_back({concat("adamw skipped ", n), [n](Bed& bed) { return run_skipped_adamw(bed, n); }});
    for (const DType dtype : types) {
      const std::string suffix = concat(" ", name_of(dtype), " ", n);
      cases.push_back({"sum_squares" + suffix, [=](Bed& bed) { return run_sum_squares(bed, dtype, n); }});
      cases.push_back({"adamw" + suffix, [=](Bed& bed) {
                         return run_adamw(bed, n, dtype == DType::kF32 ? std::nullopt : std::optional(dtype));
                       }});
      cases.push_back({"adamw bf16 moment" + suffix, [=](Bed& bed) {
                         return run_narrow_adamw(bed, n,
                                                 dtype == DType::kF32 ? std::nullopt : std::optional(dtype));
                       }});
    }
  }
}

}  // namespace megalith::test
