#include <cmath>
#include <limits>
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

constexpr double kLr = 1e-2, kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8, kDecay = 0.1, kScale = 0.25,
                 kRate = 4;

View step_scalars(Bed& bed, int64_t step, bool skip) {
  Values scalars(StepScalar::kCount,
                 std::numeric_limits<double>::quiet_NaN());  // AdamW must not read the other scalars
  scalars[StepScalar::kGradScale] = kScale;
  scalars[StepScalar::kLearningRate] = kLr / kRate;
  scalars[StepScalar::kBiasCorrection1] = 1 - std::pow(kBeta1, step);
  scalars[StepScalar::kBiasCorrection2] = 1 - std::pow(kBeta2, step);
  scalars[StepScalar::kSkip] = skip ? 1 : 0;
  return bed.put(DType::kF64, {StepScalar::kCount}, scalars);
}

/// What AdamW updates, in the memory of the device.
struct AdamViews {
  View master, m, v, value;  // value: empty for a model of fp32
};

void run_step(Bed& bed, const AdamViews& views, ConstView grad, ConstView scalars) {
  run(bed.stream(), AdamW{.master = views.master,
                          .m = views.m,
                          .v = views.v,
                          .grad = grad,
                          .value = views.value,
                          .scalars = scalars,
                          .beta1 = kBeta1,
                          .beta2 = kBeta2,
                          .eps = kEps,
                          .weight_decay = kDecay,
                          .rate = kRate});
}

/// What AdamW updates, in fp64 by the rule of torch.optim.AdamW.
struct ReferenceAdam {
  Values p, m, v;

  void step(int64_t number, const Values& grad) {
    for (size_t i = 0; i < p.size(); ++i) {
      const double g = grad[i] * kScale;
      m[i] = kBeta1 * m[i] + (1 - kBeta1) * g;
      v[i] = kBeta2 * v[i] + (1 - kBeta2) * g * g;
      const double root = std::sqrt(v[i] / (1 - std::pow(kBeta2, number))) + kEps;
      p[i] = p[i] * (1 - kLr * kDecay) - kLr * m[i] / (1 - std::pow(kBeta1, number)) / root;
    }
  }
};

/// Compares three steps with the reference. The first moment has type `moment`; in bf16 it is rounded to
/// nearest after the master has used it, so each step begins with the moment that the one before left. The
/// model's values have type `dtype`; in fp32 they are the master itself.
std::vector<Outcome> run_adamw(Bed& bed, int64_t n, DType dtype, DType moment) {
  const bool narrow = moment == DType::kBf16, has_value = dtype != DType::kF32;
  const Values zeros(static_cast<size_t>(n), 0.0);
  ReferenceAdam want{.p = random_values(n, 1), .m = narrow ? random_values(n, 2, 0.1) : zeros, .v = zeros};
  const AdamViews views{.master = bed.put(DType::kF32, {n}, want.p),
                        .m = bed.put(moment, {n}, want.m),
                        .v = bed.put(DType::kF32, {n}, want.v),
                        .value = has_value ? bed.empty(dtype, {n}) : View{}};
  std::vector<Outcome> outcomes;
  for (int64_t step = 1; step <= 3; ++step) {
    Values grad = random_values(n, static_cast<uint32_t>(10 + step));
    if (narrow) want.m = bed.get(views.m);
    run_step(bed, views, bed.put(DType::kF32, {n}, grad), step_scalars(bed, step, false));
    want.step(step, grad);
    if (narrow) outcomes.push_back({concat("m ", step), bed.get(views.m), want.m, kBf16});
  }
  outcomes.push_back({"master", bed.get(views.master), want.p, kFp32});
  if (!narrow) outcomes.push_back({"m", bed.get(views.m), want.m, kFp32});
  outcomes.push_back({"v", bed.get(views.v), want.v, kFp32});
  if (has_value) outcomes.push_back({"value", bed.get(views.value), want.p, tolerance_of(dtype)});
  return outcomes;
}

/// A skipped step, whose gradients are not finite, leaves every bit unchanged.
std::vector<Outcome> run_skipped_adamw(Bed& bed, int64_t n) {
  Values p = random_values(n, 1), m = random_values(n, 2), v = random_values(n, 3),
         rounded = random_values(n, 4);
  const AdamViews views{.master = bed.put(DType::kF32, {n}, p),
                        .m = bed.put(DType::kF32, {n}, m),
                        .v = bed.put(DType::kF32, {n}, v),
                        .value = bed.put(DType::kBf16, {n}, rounded)};
  run_step(bed, views, bed.empty(DType::kF32, {n}), step_scalars(bed, 1, true));
  return {{"master", bed.get(views.master), p, 0},
          {"m", bed.get(views.m), m, 0},
          {"v", bed.get(views.v), v, 0},
          {"value", bed.get(views.value), rounded, 0}};
}

}  // namespace

void add_optimizer_cases(std::vector<OpCase>& cases, const Types& types) {
  for (const int64_t n : {1, 17, 4097, 100000}) {
    cases.push_back({concat("adamw skipped ", n), [n](Bed& bed) { return run_skipped_adamw(bed, n); }});
    for (const DType dtype : types) {
      const std::string suffix = concat(" ", name_of(dtype), " ", n);
      cases.push_back({"sum_squares" + suffix, [=](Bed& bed) { return run_sum_squares(bed, dtype, n); }});
      for (const DType moment : {DType::kF32, DType::kBf16})
        cases.push_back({concat("adamw", moment == DType::kBf16 ? " bf16 moment" : "", suffix),
                         [=](Bed& bed) { return run_adamw(bed, n, dtype, moment); }});
    }
  }
}

}  // namespace megalith::test
