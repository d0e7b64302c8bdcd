#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/ops/case_parts.h"

namespace megalith::test {
namespace {

struct GemmCase {
  GemmShape shape;
  DType in = DType::kF32, out = DType::kF32;
  bool bias = false, accumulate = false;
};

std::vector<Outcome> run_gemm(Bed& bed, const GemmCase& g) {
  const GemmShape& s = g.shape;
  Values a = random_values(s.m * s.k, 1), b = random_values(s.k * s.n, 2), bias = random_values(s.n, 3);
  Values c = random_values(s.m * s.n, 4);
  const View a_view = bed.put(g.in, s.trans_a ? Shape{s.k, s.m} : Shape{s.m, s.k}, a);
  const View b_view = bed.put(g.in, s.trans_b ? Shape{s.n, s.k} : Shape{s.k, s.n}, b);
  const View c_view = g.accumulate ? bed.put(g.out, {s.m, s.n}, c) : bed.empty(g.out, {s.m, s.n});
  Gemm op{.c = c_view,
          .a = a_view,
          .b = b_view,
          .trans_a = s.trans_a,
          .trans_b = s.trans_b,
          .accumulate = g.accumulate};
  if (g.bias) op.bias = bed.put(g.out, {s.n}, bias);
  run(bed.stream(), op);
  Values want = reference_gemm(s, a, b);
  for (size_t i = 0; i < want.size(); ++i)
    want[i] += (g.bias ? bias[i % bias.size()] : 0) + (g.accumulate ? c[i] : 0);
  const double sum_error = 1e-7 * std::sqrt(static_cast<double>(s.k));
  return {{"c", bed.get(c_view), want, tolerance_of(g.out) + sum_error}};
}

struct EpilogueCase {
  Epilogue epilogue;
  GemmShape shape;
  DType in = DType::kF32, out = DType::kF32;
  bool bias = false, accumulate = false;
};

double gelu(double x) {
  return reference_activation(x, ActivationFunction::kGeluTanh);
}
double gelu_slope(double x) {
  constexpr double kStep = 1e-5;  // the error is about its square
  return (gelu(x + kStep) - gelu(x - kStep)) / (2 * kStep);
}

/// Products of size about 1, where GELU bends.
std::vector<Outcome> run_epilogue(Bed& bed, const EpilogueCase& e) {
  const GemmShape& s = e.shape;
  const double scale = 1 / std::sqrt(std::max(1.0, static_cast<double>(s.k)));
  Values a = random_values(s.m * s.k, 1), b = random_values(s.k * s.n, 2, scale),
         bias = random_values(s.n, 3), at = random_values(s.m * s.n, 4), sums = random_values(s.m, 5),
         c = random_values(s.m * s.n, 6);
  const Shape shape{s.m, s.n};
  const View c_view = e.accumulate ? bed.put(e.out, shape, c) : bed.empty(e.out, shape);
  Gemm op{.c = c_view,
          .a = bed.put(e.in, s.trans_a ? Shape{s.k, s.m} : Shape{s.m, s.k}, a),
          .b = bed.put(e.in, s.trans_b ? Shape{s.n, s.k} : Shape{s.k, s.n}, b),
          .trans_a = s.trans_a,
          .trans_b = s.trans_b,
          .accumulate = e.accumulate};
  if (e.bias) op.bias = bed.put(e.out, {s.n}, bias);
  if (e.epilogue == Epilogue::kGelu) op.before_gelu = bed.empty(e.out, shape);
  if (e.epilogue == Epilogue::kGeluGrad) op.gelu_grad_at = bed.put(e.out, shape, at);
  if (e.epilogue == Epilogue::kBiasGrad) op.bias_grad = bed.put(DType::kF32, {s.m}, sums);
  run(bed.stream(), op);
  Values want = reference_gemm(s, a, b);
  for (size_t i = 0; i < want.size(); ++i)
    want[i] += (e.bias ? bias[i % bias.size()] : 0) + (e.accumulate ? c[i] : 0);
  // A product that is rounded before GELU has two roundings.
  const double tolerance = tolerance_of(e.out) + 1e-6, twice = 2 * tolerance;
  if (e.epilogue == Epilogue::kGelu) {
    Values after;
    for (const double value : want) after.push_back(gelu(value));
    return {{"before_gelu", bed.get(op.before_gelu), want, tolerance}, {"c", bed.get(c_view), after, twice}};
  }
  if (e.epilogue == Epilogue::kGeluGrad) {
    for (size_t i = 0; i < want.size(); ++i) want[i] *= gelu_slope(at[i]);
    return {{"c", bed.get(c_view), want, twice}};
  }
  for (size_t i = 0; i < a.size(); ++i) sums[i % static_cast<size_t>(s.m)] += a[i];
  return {{"c", bed.get(c_view), want, tolerance}, {"bias_grad", bed.get(op.bias_grad), sums, kFp32}};
}

struct ProjectCase {
  DType weights;
  int64_t rows, out, in;
  bool bias;
};

std::vector<Outcome> run_project(Bed& bed, const ProjectCase& c) {
  Values x = random_values(c.rows * c.in, 1), w = random_values(c.out * c.in, 2),
         bias = random_values(c.out, 3);
  // Many rows may be rounded to bf16 beside weights of bf16 (RoundsManyRowsToBf16): these need no rounding.
  if (c.weights == DType::kBf16 && c.rows > Project::kFewRows) bed.put(DType::kBf16, {c.rows, c.in}, x);
  const View y = bed.empty(DType::kF32, {c.rows, c.out}), bias_view = bed.put(DType::kF32, {c.out}, bias);
  run(bed.stream(), Project{.y = y,
                            .x = bed.put(DType::kF32, {c.rows, c.in}, x),
                            .w = bed.put(c.weights, {c.out, c.in}, w),
                            .bias = c.bias ? ConstView(bias_view) : ConstView{}});
  Values want = reference_gemm({.m = c.rows, .n = c.out, .k = c.in, .trans_b = true}, x, w);
  for (size_t i = 0; c.bias && i < want.size(); ++i) want[i] += bias[i % bias.size()];
  return {{"y", bed.get(y), want, kFp32, std::sqrt(static_cast<double>(c.in))}};
}

std::vector<Outcome> run_bias_grad(Bed& bed, DType dtype, int64_t rows, int64_t columns) {
  Values dy = random_values(rows * columns, 1), dbias = random_values(columns, 2);
  const View view = bed.put(DType::kF32, {columns}, dbias);
  run(bed.stream(), BiasGrad{.dbias = view, .dy = bed.put(dtype, {rows, columns}, dy)});
  for (size_t i = 0; i < dy.size(); ++i) dbias[i % static_cast<size_t>(columns)] += dy[i];
  return {{"dbias", bed.get(view), dbias, kFp32}};
}

/// With rows that are whole vectors of 8, which cuBLASLt fuses, with others, with fewer than 8 columns, and
/// with empty axes.
void add_epilogue_cases(std::vector<OpCase>& cases, DType in, DType out, const std::string& type) {
  const auto add = [&](const std::string& name, const EpilogueCase& e) {
    cases.push_back({concat("gemm ", type, ' ', name), [e](Bed& bed) { return run_epilogue(bed, e); }});
  };
  for (const int64_t n : {64, 65, 3}) {
    const GemmShape forward{17, n, 96, false, true}, input{17, n, 96}, weight{n, 40, 33, true};
    for (const bool bias : {false, true})
      add(concat("gelu ", n, bias ? " bias" : ""), {Epilogue::kGelu, forward, in, out, bias});
    add(concat("gelu_grad ", n), {Epilogue::kGeluGrad, input, in, out});
    add(concat("bias_grad ", n), {Epilogue::kBiasGrad, weight, in, out});
    add(concat("bias_grad add ", n), {Epilogue::kBiasGrad, weight, in, out, false, true});
  }
  add("gelu row bias", {Epilogue::kGelu, {1, 128, 257, false, true}, in, out, true});
  add("gelu no depth bias", {Epilogue::kGelu, {3, 8, 0, true}, in, out, true});
  add("gelu_grad no rows", {Epilogue::kGeluGrad, {0, 8, 8}, in, out});
  add("bias_grad no depth", {Epilogue::kBiasGrad, {8, 3, 0, true}, in, out, false, true});
}

}  // namespace

void add_linear_cases(std::vector<OpCase>& cases, const Types& types) {
  const auto add = [&](const std::string& name, const GemmCase& g) {
    cases.push_back({"gemm " + name, [g](Bed& bed) { return run_gemm(bed, g); }});
  };
  for (const DType weights : types)
    for (const int64_t rows : {0, 1, 5, 8, 19})
      for (const auto& [out, in] : {std::pair<int64_t, int64_t>{1, 1}, {13, 40}, {9, 203}, {64, 512}}) {
        const ProjectCase c{weights, rows, out, in, rows % 2 == 1};
        cases.push_back({concat("project ", name_of(weights), ' ', rows, " x ", out, " x ", in),
                         [c](Bed& bed) { return run_project(bed, c); }});
      }
  std::vector<std::pair<DType, DType>> products;
  for (const DType dtype : types) {
    products.emplace_back(dtype, dtype);
    if (dtype != DType::kF32) products.emplace_back(dtype, DType::kF32);
  }
  for (const auto& [in, out] : products) {
    const std::string type = in == out ? std::string(name_of(in)) : concat(name_of(in), " to ", name_of(out));
    for (const bool trans_a : {false, true})
      for (const bool trans_b : {false, true})
        for (const bool accumulate : {false, true})
          add(concat(type, " 33x65x17", trans_a ? " at" : "", trans_b ? " bt" : "", accumulate ? " add" : ""),
              {{33, 65, 17, trans_a, trans_b}, in, out, false, accumulate});
    add_epilogue_cases(cases, in, out, type);
    add(type + " bias", {{17, 64, 96, false, true}, in, out, true});
    add(type + " one", {{1, 1, 1}, in, out});
    add(type + " long", {{3, 5, 4097, false, true}, in, out});
    add(type + " row", {{1, 129, 257, false, true}, in, out});
    add(type + " row bias", {{1, 129, 257, false, true}, in, out, true});
    add(type + " row add", {{1, 129, 257, false, true}, in, out, false, true});
    add(type + " row plain", {{1, 129, 257}, in, out});
    add(type + " no rows", {{0, 8, 8}, in, out});
    add(type + " no depth", {{3, 8, 0, true}, in, out});
    add(type + " no depth bias", {{3, 8, 0, true}, in, out, true});
    add(type + " no depth add", {{3, 8, 0, true}, in, out, false, true});
  }
  for (const DType dtype : types)
    for (const int64_t n : {1, 17, 4097}) {
      const std::string suffix = concat(" ", name_of(dtype), " ", n);
      cases.push_back({"bias_grad" + suffix, [=](Bed& bed) { return run_bias_grad(bed, dtype, 70, n); }});
      cases.push_back({"bias_grad rows" + suffix, [=](Bed& bed) { return run_bias_grad(bed, dtype, n, 5); }});
    }
}

}  // namespace megalith::test
