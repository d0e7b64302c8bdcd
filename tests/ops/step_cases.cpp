#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/ops/case_parts.h"

namespace megalith::test {
namespace {

/// `out` is not 0 before ScaledSum, which must add to it. `further`: a factor in memory; 1: none.
std::vector<Outcome> run_scaled_sum(Bed& bed, int64_t n, double further) {
  Values x = random_values(n, 1);
  constexpr double kScale = 1.0 / 3, kBefore = 0.5;
  const double factor = kScale * further;
  const View out = bed.put(DType::kF64, {1}, Values{kBefore});
  run(bed.stream(),
      ScaledSum{.out = out,
                .x = bed.put(DType::kF32, {n}, x),
                .scale = kScale,
                .scale_at = further == 1 ? View{} : bed.put(DType::kF32, {1}, Values{further})});
  double sum = 0;
  for (const double value : x) sum += value;
  return {{"out", bed.get(out), {kBefore + factor * sum}, 1e-13, factor * std::sqrt(static_cast<double>(n))}};
}

/// A step's loss, sum of squares and loss scale, the clipping norm, and the expected decision.
struct Decision {
  double loss, sum_squares, loss_scale, max_norm;
  double norm, grad_scale, skip;
};

/// The learning rate and the corrections that are left if the step before was skipped (`skip` 1) or not.
std::vector<Outcome> run_choice(Bed& bed, double skip) {
  Values before(StepScalar::kCount, 1.0);
  for (int i = 0; i < 3; ++i) {
    before[static_cast<size_t>(StepScalar::kLearningRate + i)] = 10 + i;
    before[static_cast<size_t>(StepScalar::kOtherLearningRate + i)] = 20 + i;
  }
  before[StepScalar::kSkip] = skip;
  const View scalars = bed.put(DType::kF64, {StepScalar::kCount}, before);
  run(bed.stream(), DecideStep{.scalars = scalars, .max_norm = 0});
  const Values after = bed.get(scalars);
  const double first = skip == 0 ? 10 : 20;
  return {{"rate and corrections",
           {after.begin() + StepScalar::kLearningRate, after.begin() + StepScalar::kLearningRate + 3},
           {first, first + 1, first + 2},
           0},
          {"skip", {after[StepScalar::kSkip]}, {0}, 0}};
}

std::vector<Outcome> run_decide_step(Bed& bed, const Decision& c) {
  Values before(StepScalar::kCount, 7.0);  // DecideStep must not change the scalars that it does not write
  before[StepScalar::kLoss] = c.loss;
  before[StepScalar::kSumSquares] = c.sum_squares;
  before[StepScalar::kLossScale] = c.loss_scale;
  const View scalars = bed.put(DType::kF64, {StepScalar::kCount}, before);
  run(bed.stream(), DecideStep{.scalars = scalars, .max_norm = c.max_norm});
  const Values after = bed.get(scalars);
  constexpr double kRounded = 1e-15;
  std::vector<Outcome> outcomes = {{"skip", {after[StepScalar::kSkip]}, {c.skip}, 0},
                                   {"grad scale", {after[StepScalar::kGradScale]}, {c.grad_scale}, kRounded},
                                   {"learning rate", {after[StepScalar::kLearningRate]}, {7}, 0},
                                   {"loss scale", {after[StepScalar::kLossScale]}, {c.loss_scale}, 0}};
  if (!std::isnan(c.norm)) outcomes.push_back({"norm", {after[StepScalar::kNorm]}, {c.norm}, kRounded});
  return outcomes;
}

}  // namespace

void add_step_cases(std::vector<OpCase>& cases) {
  for (const int64_t n : {1, 17, 4097, 100000})
    for (const double further : {1.0, 0.25})
      cases.push_back({concat("scaled_sum ", n, further == 1 ? "" : " by a factor in memory"),
                       [n, further](Bed& bed) { return run_scaled_sum(bed, n, further); }});
  for (const double skip : {0.0, 1.0})
    cases.push_back({concat("decide_step after a step with skip ", skip),
                     [skip](Bed& bed) { return run_choice(bed, skip); }});
  const auto add = [&](const std::string& name, const Decision& c) {
    cases.push_back({"decide_step " + name, [c](Bed& bed) { return run_decide_step(bed, c); }});
  };
  constexpr double kInfinite = std::numeric_limits<double>::infinity(),
                   kNaN = std::numeric_limits<double>::quiet_NaN();
  add("below the norm", {2, 0.25, 1, 1, 0.5, 1, 0});
  add("above the norm", {2, 16, 1, 1, 4, 1 / 4.000001, 0});
  add("not clipped", {2, 16, 1, 0, 4, 1, 0});
  add("scaled loss", {2, 16.0 * 1024 * 1024, 1024, 1, 4, 1 / 4.000001 / 1024, 0});
  add("no gradient", {2, 0, 1, 1, 0, 1, 0});
  add("infinite gradient", {2, kInfinite, 1, 1, kInfinite, 0, 1});
  add("gradient without a number", {2, kNaN, 1, 1, kNaN, 0, 1});
  add("infinite loss", {kInfinite, 16, 1, 1, 4, 0, 1});
  add("loss without a number", {kNaN, 16, 8, 1, 0.5, 0, 1});
}

}  // namespace megalith::test
