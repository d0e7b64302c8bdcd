#include "tests/ops/cases.h"

#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "tests/ops/case_parts.h"

namespace megalith::test {
namespace {

/// At most 16 of the places 0 .. n - 1, always with the first and the last; the others are chosen by a seeded
/// shuffle.
std::vector<size_t> some_places(size_t n) {
  std::vector<size_t> places(n);
  std::iota(places.begin(), places.end(), size_t{0});
  if (n <= 16) return places;
  std::mt19937 engine(7);
  std::vector<size_t> some = {0, n - 1};
  while (some.size() < 16) some.push_back(engine() % n);
  return some;
}

}  // namespace

double tolerance_of(DType dtype) {
  return dtype == DType::kF32 ? kFp32 : dtype == DType::kBf16 ? kBf16 : kFp16;
}

double inner(const Values& a, const Values& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

Values plus(Values a, const Values& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

Values some_ids(int64_t n, int64_t vocabulary) {
  std::mt19937 engine(5);
  Values ids(static_cast<size_t>(n));
  for (double& id : ids) id = static_cast<double>(engine() % static_cast<uint32_t>(vocabulary));
  return ids;
}

Outcome gradient(const Bed& bed, std::string what, const Values& got,
                 const std::function<double(const Values&)>& f, const Values& x, double tolerance) {
  if (!bed.references()) return {std::move(what), got, {}, tolerance};
  std::vector<size_t> places = some_places(x.size());
  const double numeric_error = 1e-10 * (1 + std::abs(f(x)));  // of finite differences; see numeric_gradient
  Values want = numeric_gradient(f, x, places);
  return {std::move(what), got, std::move(want), tolerance, numeric_error / tolerance, std::move(places)};
}

DropoutKey dropout_key(Bed& bed, int64_t batch, float p) {
  Values samples(kSampleNumbers.begin(), kSampleNumbers.begin() + batch);
  return {.p = p,
          .seed = 1234,
          .layer = 6,
          .site = 2,
          .samples = bed.put(DType::kI64, {batch}, samples),
          .rows = {.first = 9}};
}

std::vector<OpCase> op_cases(const Types& types) {
  std::vector<OpCase> cases;
  add_linear_cases(cases, types);
  add_slot_cases(cases, types);
  add_norm_cases(cases, types);
  add_heads_norm_cases(cases, types);
  add_activation_cases(cases, types);
  add_dropout_cases(cases, types);
  add_attention_cases(cases, types);
  add_embedding_cases(cases, types);
  add_loss_cases(cases, types);
  add_optimizer_cases(cases, types);
  add_step_cases(cases);
  return cases;
}

}  // namespace megalith::test
