#include <string>
#include <vector>

#include "libcore/config/activations.h"
#include "tests/ops/case_parts.h"

namespace megalith::test {
namespace {

std::vector<Outcome> run_activate(Bed& bed, DType dtype, int64_t n, ActivationFunction function) {
  Values x = random_values(n, 1, 3);
  const View view = bed.put(dtype, {1, n}, x);
  run(bed.stream(), Activate{.y = view, .x = view, .function = function});
  Values want;
  for (const double value : x) want.push_back(reference_activation(value, function));
  return {{"y", bed.get(view), want, tolerance_of(dtype)}};
}

std::vector<Outcome> run_activate_grad(Bed& bed, DType dtype, int64_t n, ActivationFunction function) {
  Values x = random_values(n, 1, 3), dy = random_values(n, 2);
  const View view = bed.put(dtype, {n, 1}, dy);
  run(bed.stream(),
      ActivateGrad{.dx = view, .dy = view, .x = bed.put(dtype, {n, 1}, x), .function = function});
  const auto loss = [&](const Values& at) {
    double sum = 0;
    for (size_t i = 0; i < at.size(); ++i) sum += dy[i] * reference_activation(at[i], function);
    return sum;
  };
  return {gradient(bed, "dx", bed.get(view), loss, x, tolerance_of(dtype))};
}

std::vector<Outcome> run_swiglu(Bed& bed, DType dtype, int64_t rows, int64_t f) {
  Values x = random_values(rows * 2 * f, 1, 3);
  const View y = bed.empty(dtype, {rows, f});
  run(bed.stream(), SwiGlu{.y = y, .x = bed.put(dtype, {rows, 2, f}, x)});
  return {{"y", bed.get(y), reference_swiglu(x, f), tolerance_of(dtype)}};
}

std::vector<Outcome> run_swiglu_grad(Bed& bed, DType dtype, int64_t rows, int64_t f) {
  Values x = random_values(rows * 2 * f, 1, 3), dy = random_values(rows * f, 2);
  const View view = bed.put(dtype, {rows, 2, f}, x);  // dx shares x's memory
  run(bed.stream(), SwiGluGrad{.dx = view, .dy = bed.put(dtype, {rows, f}, dy), .x = view});
  const auto loss = [&](const Values& at) { return inner(reference_swiglu(at, f), dy); };
  return {gradient(bed, "dx", bed.get(view), loss, x, tolerance_of(dtype))};
}

/// Where a rank's rows and columns begin.
struct DropoutPlace {
  RowPositions rows = {.first = 9};
  int64_t first_column = 0;
};
std::vector<Outcome> run_dropout(Bed& bed, DType dtype, Shape shape, float p, bool residual,
                                 const DropoutPlace& begin = {}) {
  Values x = random_values(shape.elements(), 1), rest = random_values(shape.elements(), 2);
  const View view = bed.put(dtype, shape, x);
  Dropout op{.y = view, .x = view, .key = p == 0 ? DropoutKey{} : dropout_key(bed, shape[1], p)};
  op.key.rows = begin.rows;
  op.key.first_column = begin.first_column;
  if (residual) op.residual = bed.put(dtype, shape, rest);
  run(bed.stream(), op);
  Values want = x;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const int64_t row = i / shape[2], sequence = row % shape[1];
    const MaskPlace place{static_cast<double>(p),
                          1234,
                          6,
                          2,
                          static_cast<int64_t>(kSampleNumbers[static_cast<size_t>(sequence)]),
                          begin.rows.at(row / shape[1]),
                          begin.first_column + i % shape[2]};
    double& value = want[static_cast<size_t>(i)];
    value = value * reference_mask(place) + (residual ? rest[static_cast<size_t>(i)] : 0);
  }
  return {{"y", bed.get(view), want, tolerance_of(dtype)}};
}

}  // namespace

void add_activation_cases(std::vector<OpCase>& cases, const Types& types) {
  for (const DType dtype : types)
    for (const int64_t n : {1, 17, 4097}) {
      const std::string suffix = concat(" ", name_of(dtype), " ", n);
      for (const ActivationRow& row : activations()) {
        const ActivationFunction function = row.function;
        const std::string name = concat(' ', row.hf.front(), suffix);
        cases.push_back({"activate" + name, [=](Bed& bed) { return run_activate(bed, dtype, n, function); }});
        cases.push_back(
            {"activate_grad" + name, [=](Bed& bed) { return run_activate_grad(bed, dtype, n, function); }});
      }
    }
  for (const DType dtype : types)
    for (const int64_t f : {1, 17, 40, 4097, 4104}) {
      const std::string suffix = concat(" ", name_of(dtype), " ", f);
      cases.push_back({"swiglu" + suffix, [=](Bed& bed) { return run_swiglu(bed, dtype, 3, f); }});
      cases.push_back({"swiglu_grad" + suffix, [=](Bed& bed) { return run_swiglu_grad(bed, dtype, 3, f); }});
    }
}

void add_dropout_cases(std::vector<OpCase>& cases, const Types& types) {
  for (const DType dtype : types) {
    const std::string type = concat("dropout ", name_of(dtype), " ");
    for (const int64_t h : {1, 17, 4097, 4104})
      cases.push_back({concat(type, h), [=](Bed& bed) {
                         return run_dropout(bed, dtype, {3, 2, h}, 0.3f, false);
                       }});
    cases.push_back({type + "residual", [=](Bed& bed) {
                       return run_dropout(bed, dtype, {5, 3, 70}, 0.1f, true);
                     }});
    cases.push_back({type + "wide residual", [=](Bed& bed) {
                       return run_dropout(bed, dtype, {5, 3, 72}, 0.1f, true);
                     }});
    cases.push_back({type + "context", [=](Bed& bed) {
                       return run_dropout(bed, dtype, {6, 2, 33}, 0.4f, true,
                                          {.rows = {.first = 3, .split = 2, .jump = 8}});
                     }});
    for (const int64_t first : {1, 6, 40})
      for (const int64_t h : {33, 72})
        cases.push_back({concat(type, h, " from column ", first), [=](Bed& bed) {
                           return run_dropout(bed, dtype, {3, 2, h}, 0.4f, false, {.first_column = first});
                         }});
    cases.push_back({type + "none", [=](Bed& bed) { return run_dropout(bed, dtype, {5, 3, 70}, 0, true); }});
    cases.push_back({type + "high", [=](Bed& bed) {
                       return run_dropout(bed, dtype, {2, 1, 256}, 0.99f, false);
                     }});
  }
}

}  // namespace megalith::test
