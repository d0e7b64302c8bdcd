#include "tests/ops/cases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

namespace megalith::test {
namespace {

// fp32: a few ulp (6e-8) of intermediate values, more where a sum of k terms rounds k times. bf16: half an
// ulp of storage, 2^-9 of the value, once per stored tensor.
constexpr double kFp32 = 2e-6, kBf16 = 0x1p-8;
double tolerance_of(DType dtype) {
  return dtype == DType::kF32 ? kFp32 : kBf16;
}

double inner(const Values& a, const Values& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// At most 16 places of n, spread by a seeded shuffle; the first and the last among them.
std::vector<size_t> some_places(size_t n) {
  std::vector<size_t> places(n);
  std::iota(places.begin(), places.end(), size_t{0});
  if (n <= 16) return places;
  std::mt19937 engine(7);
  std::vector<size_t> some = {0, n - 1};
  while (some.size() < 16) some.push_back(engine() % n);
  return some;
}

Values pick(const Values& values, const std::vector<size_t>& places) {
  Values some;
  for (const size_t i : places) some.push_back(values[i]);
  return some;
}

/// The gradient at some places against finite differences of f.
Outcome gradient(const Bed& bed, std::string what, const Values& got,
                 const std::function<double(const Values&)>& f, const Values& x, double tolerance) {
  const std::vector<size_t> places = some_places(x.size());
  if (!bed.references()) return {std::move(what), got, {}, tolerance};
  const double numeric_error = 1e-10 * (1 + std::abs(f(x)));  // see numeric_gradient
  return {std::move(what), pick(got, places), numeric_gradient(f, x, places), tolerance,
          numeric_error / tolerance};
}

Values plus(Values a, const Values& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// ---- linear
// ----------------------------------------------------------------------------------------------------------------

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

void add_gemm_cases(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& name, const GemmCase& g) {
    cases.push_back({"gemm " + name, [g](Bed& bed) { return run_gemm(bed, g); }});
  };
  for (const auto& [name, in, out] :
       {std::tuple{"fp32", DType::kF32, DType::kF32}, std::tuple{"bf16", DType::kBf16, DType::kBf16},
        std::tuple{"bf16 to fp32", DType::kBf16, DType::kF32}}) {
    const std::string type = name;
    for (const bool trans_a : {false, true})
      for (const bool trans_b : {false, true})
        for (const bool accumulate : {false, true})
          add(concat(type, " 33x65x17", trans_a ? " at" : "", trans_b ? " bt" : "", accumulate ? " add" : ""),
              {{33, 65, 17, trans_a, trans_b}, in, out, false, accumulate});
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
}

std::vector<Outcome> run_bias_grad(Bed& bed, DType dtype, int64_t rows, int64_t columns) {
  Values dy = random_values(rows * columns, 1), dbias = random_values(columns, 2);
  const View view = bed.put(DType::kF32, {columns}, dbias);
  run(bed.stream(), BiasGrad{.dbias = view, .dy = bed.put(dtype, {rows, columns}, dy)});
  for (size_t i = 0; i < dy.size(); ++i) dbias[i % static_cast<size_t>(columns)] += dy[i];
  return {{"dbias", bed.get(view), dbias, kFp32}};
}

// ---- norm
// ------------------------------------------------------------------------------------------------------------------

struct NormCase {
  int64_t rows, h;
  DType dtype = DType::kF32;
  bool centred = true, residual = false, keep = true;  // residual: in the gradient, `add`
  double offset = 0;                                   // of x: a mean far from 0
};

std::vector<Outcome> run_norm(Bed& bed, const NormCase& c) {
  const Shape shape{c.rows, c.h};
  Values x = random_values(c.rows * c.h, 1), w = random_values(c.h, 2), b = random_values(c.h, 3);
  for (double& value : x) value += c.offset;
  Values residual = random_values(c.rows * c.h, 4);
  const View x_view = bed.put(c.dtype, shape, x), w_view = bed.put(c.dtype, {c.h}, w);
  const View b_view = bed.put(c.dtype, {c.h}, b), y = bed.empty(c.dtype, shape);
  const View mean = c.keep ? bed.empty(DType::kF32, {c.rows}) : View{};
  const View rstd = c.keep ? bed.empty(DType::kF32, {c.rows}) : View{};
  const View residual_view = c.residual ? bed.put(c.dtype, shape, residual) : View{};
  const View sum = c.residual ? bed.empty(c.dtype, shape) : View{};
  if (c.centred)
    run(bed.stream(), LayerNorm{.y = y,
                                .x = x_view,
                                .w = w_view,
                                .b = b_view,
                                .mean = mean,
                                .rstd = rstd,
                                .residual = residual_view,
                                .sum = sum});
  else
    run(bed.stream(),
        RmsNorm{.y = y, .x = x_view, .w = w_view, .rstd = rstd, .residual = residual_view, .sum = sum});
  std::vector<Outcome> outcomes;
  if (c.residual) {
    outcomes.push_back({"sum", bed.get(sum), plus(x, residual), tolerance_of(c.dtype)});
    x = bed.get(sum);  // what is normalised is what is kept
  }
  const NormResult want = reference_norm({c.h, static_cast<double>(1e-5f), c.centred}, x, w, b);
  const double precision = tolerance_of(c.dtype) * (1 + std::abs(c.offset));
  outcomes.push_back({"y", bed.get(y), want.y, precision});
  if (c.keep && c.centred) outcomes.push_back({"mean", bed.get(mean), want.mean, kFp32});
  if (c.keep) outcomes.push_back({"rstd", bed.get(rstd), want.rstd, precision});
  return outcomes;
}

std::vector<Outcome> run_norm_grad(Bed& bed, const NormCase& c) {
  const Shape shape{c.rows, c.h};
  Values x = random_values(c.rows * c.h, 1), w = random_values(c.h, 2), b(static_cast<size_t>(c.h), 0.0);
  Values dy = random_values(c.rows * c.h, 3), add = random_values(c.rows * c.h, 4);
  Values dw = random_values(c.h, 5), db = random_values(c.h, 6);
  const View x_view = bed.put(c.dtype, shape, x), w_view = bed.put(c.dtype, {c.h}, w);
  const NormShape norm{c.h, 1e-5, c.centred};
  NormResult kept = reference_norm(norm, x, w, b);
  const View mean = bed.put(DType::kF32, {c.rows}, kept.mean),
             rstd = bed.put(DType::kF32, {c.rows}, kept.rstd);
  const View dx = bed.put(c.dtype, shape, dy);  // dx in dy's memory
  const View dw_view = c.keep ? bed.put(DType::kF32, {c.h}, dw) : View{};
  const View db_view = c.keep ? bed.put(DType::kF32, {c.h}, db) : View{};
  const View add_view = c.residual ? bed.put(c.dtype, shape, add) : View{};
  if (c.centred)
    run(bed.stream(), LayerNormGrad{.dx = dx,
                                    .dw = dw_view,
                                    .db = db_view,
                                    .dy = dx,
                                    .x = x_view,
                                    .w = w_view,
                                    .mean = mean,
                                    .rstd = rstd,
                                    .add = add_view});
  else
    run(bed.stream(),
        RmsNormGrad{
            .dx = dx, .dw = dw_view, .dy = dx, .x = x_view, .w = w_view, .rstd = rstd, .add = add_view});
  const auto loss_of_x = [&](const Values& at) {
    return inner(reference_norm(norm, at, w, b).y, dy) + (c.residual ? inner(at, add) : 0);
  };
  const double precision = tolerance_of(c.dtype) * 2;
  std::vector<Outcome> outcomes = {gradient(bed, "dx", bed.get(dx), loss_of_x, x, precision)};
  outcomes[0].size += 1;  // dy w, which cancels against its mean
  if (!c.keep) return outcomes;
  const auto loss_of_w = [&](const Values& at) {
    return inner(reference_norm(norm, x, at, b).y, dy) + inner(at, dw);
  };
  outcomes.push_back(gradient(bed, "dw", bed.get(dw_view), loss_of_w, w, kFp32 * 2));
  if (!c.centred) return outcomes;
  const auto loss_of_b = [&](const Values& at) {
    return inner(reference_norm(norm, x, w, at).y, dy) + inner(at, db);
  };
  outcomes.push_back(gradient(bed, "db", bed.get(db_view), loss_of_b, b, kFp32));
  return outcomes;
}

void add_norm_cases(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& name, const NormCase& c) {
    const std::string type = concat(c.dtype == DType::kF32 ? "fp32 " : "bf16 ", name, " ", c.rows, "x", c.h);
    const std::string op = c.centred ? "layer_norm" : "rms_norm";
    cases.push_back({op + " " + type, [c](Bed& bed) { return run_norm(bed, c); }});
    if (c.offset == 0)
      cases.push_back({op + "_grad " + type, [c](Bed& bed) { return run_norm_grad(bed, c); }});
  };
  for (const bool centred : {true, false})
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      add("plain", {5, 64, dtype, centred});
      add("residual", {37, 17, dtype, centred, true});
      add("nothing kept", {3, 33, dtype, centred, false, false});
      add("one", {1, 1, dtype, centred});
      add("wide", {2, 4097, dtype, centred, true});
      add("many rows", {1100, 3, dtype, centred});
      add("no rows", {0, 8, dtype, centred});
      if (dtype == DType::kF32) add("far mean", {4, 129, dtype, centred, false, true, 30.0});
    }
}

// ---- activation
// ------------------------------------------------------------------------------------------------------------

std::vector<Outcome> run_gelu(Bed& bed, DType dtype, int64_t n, bool tanh_form) {
  Values x = random_values(n, 1, 3);
  const View view = bed.put(dtype, {1, n}, x);
  run(bed.stream(), Gelu{.y = view, .x = view, .tanh_form = tanh_form});
  Values want;
  for (const double value : x) want.push_back(reference_gelu(value, tanh_form));
  return {{"y", bed.get(view), want, tolerance_of(dtype)}};
}

std::vector<Outcome> run_gelu_grad(Bed& bed, DType dtype, int64_t n, bool tanh_form) {
  Values x = random_values(n, 1, 3), dy = random_values(n, 2);
  const View view = bed.put(dtype, {n, 1}, dy);
  run(bed.stream(), GeluGrad{.dx = view, .dy = view, .x = bed.put(dtype, {n, 1}, x), .tanh_form = tanh_form});
  const auto loss = [&](const Values& at) {
    double sum = 0;
    for (size_t i = 0; i < at.size(); ++i) sum += dy[i] * reference_gelu(at[i], tanh_form);
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
  const View view = bed.put(dtype, {rows, 2, f}, x);  // dx in x's memory
  run(bed.stream(), SwiGluGrad{.dx = view, .dy = bed.put(dtype, {rows, f}, dy), .x = view});
  const auto loss = [&](const Values& at) { return inner(reference_swiglu(at, f), dy); };
  return {gradient(bed, "dx", bed.get(view), loss, x, tolerance_of(dtype))};
}

void add_activation_cases(std::vector<OpCase>& cases) {
  for (const DType dtype : {DType::kF32, DType::kBf16})
    for (const int64_t n : {1, 17, 4097}) {
      const std::string suffix = concat(dtype == DType::kF32 ? " fp32 " : " bf16 ", n);
      for (const bool tanh_form : {true, false}) {
        const std::string form = (tanh_form ? " tanh" : " erf") + suffix;
        cases.push_back({"gelu" + form, [=](Bed& bed) { return run_gelu(bed, dtype, n, tanh_form); }});
        cases.push_back(
            {"gelu_grad" + form, [=](Bed& bed) { return run_gelu_grad(bed, dtype, n, tanh_form); }});
      }
      cases.push_back({"swiglu" + suffix, [=](Bed& bed) { return run_swiglu(bed, dtype, 3, n); }});
      cases.push_back({"swiglu_grad" + suffix, [=](Bed& bed) { return run_swiglu_grad(bed, dtype, 3, n); }});
      cases.push_back({"bias_grad" + suffix, [=](Bed& bed) { return run_bias_grad(bed, dtype, 70, n); }});
      cases.push_back({"bias_grad rows" + suffix, [=](Bed& bed) { return run_bias_grad(bed, dtype, n, 5); }});
    }
}

// ---- dropout
// ---------------------------------------------------------------------------------------------------------------

constexpr std::array kSampleNumbers = {3.0, 4294967296.0 * 5 + 7, 11.0};  // the second needs both halves

DropoutKey dropout_key(Bed& bed, int64_t batch, float p) {
  Values samples(kSampleNumbers.begin(), kSampleNumbers.begin() + batch);
  return {.p = p,
          .seed = 1234,
          .layer = 6,
          .site = 2,
          .samples = bed.put(DType::kI64, {batch}, samples),
          .first_position = 9};
}

std::vector<Outcome> run_dropout(Bed& bed, DType dtype, Shape shape, float p, bool residual) {
  Values x = random_values(shape.elements(), 1), rest = random_values(shape.elements(), 2);
  const View view = bed.put(dtype, shape, x);
  Dropout op{.y = view, .x = view, .key = p == 0 ? DropoutKey{} : dropout_key(bed, shape[1], p)};
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
                          9 + row / shape[1],
                          i % shape[2]};
    double& value = want[static_cast<size_t>(i)];
    value = value * reference_mask(place) + (residual ? rest[static_cast<size_t>(i)] : 0);
  }
  return {{"y", bed.get(view), want, tolerance_of(dtype)}};
}

void add_dropout_cases(std::vector<OpCase>& cases) {
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const std::string type = dtype == DType::kF32 ? "dropout fp32 " : "dropout bf16 ";
    for (const int64_t h : {1, 17, 4097})
      cases.push_back({concat(type, h), [=](Bed& bed) {
                         return run_dropout(bed, dtype, {3, 2, h}, 0.3f, false);
                       }});
    cases.push_back({type + "residual", [=](Bed& bed) {
                       return run_dropout(bed, dtype, {5, 3, 70}, 0.1f, true);
                     }});
    cases.push_back({type + "none", [=](Bed& bed) { return run_dropout(bed, dtype, {5, 3, 70}, 0, true); }});
    cases.push_back({type + "high", [=](Bed& bed) {
                       return run_dropout(bed, dtype, {2, 1, 256}, 0.99f, false);
                     }});
  }
}

// ---- attention
// -------------------------------------------------------------------------------------------------------------

struct AttentionCase {
  HeadShape heads;
  DType dtype = DType::kF32;
  float p = 0;
  bool keep_lse = true;
};

Shape packed_shape(const HeadShape& h) {
  return {h.s, h.b, h.groups, h.r + 2, h.head};
}
Shape out_shape(const HeadShape& h) {
  return {h.s, h.b, h.groups * h.r, h.head};
}

constexpr int64_t kFirstHead = 2;

/// The mask of the attention op under dropout_key.
MaskFunction attention_mask(const AttentionCase& c) {
  if (c.p == 0) return {};
  return [c](int64_t sequence, int64_t head, int64_t query, int64_t key) {
    return reference_mask({static_cast<double>(c.p), 1234, 6, 2,
                           static_cast<int64_t>(kSampleNumbers[static_cast<size_t>(sequence)]), 9 + query,
                           (kFirstHead + head) * c.heads.s + key});
  };
}

DropoutKey attention_key(Bed& bed, const AttentionCase& c) {
  if (c.p == 0) return {};
  DropoutKey key = dropout_key(bed, c.heads.b, c.p);
  key.first_head = kFirstHead;
  return key;
}

float scale_of(const HeadShape& h) {
  return 1 / std::sqrt(static_cast<float>(h.head));
}

std::vector<Outcome> run_attention(Bed& bed, const AttentionCase& c) {
  const HeadShape& h = c.heads;
  Values qkv = random_values(h.qkv_size(), 1, 1.5);
  const View out = bed.empty(c.dtype, out_shape(h));
  const View lse = c.keep_lse ? bed.empty(DType::kF32, {h.b, h.groups * h.r, h.s}) : View{};
  run(bed.stream(), Attention{.out = out,
                              .qkv = bed.put(c.dtype, packed_shape(h), qkv),
                              .scale = scale_of(h),
                              .lse = lse,
                              .dropout = attention_key(bed, c)});
  const AttentionResult want =
      reference_attention(h, qkv, static_cast<double>(scale_of(h)), attention_mask(c));
  std::vector<Outcome> outcomes = {{"out", bed.get(out), want.out, tolerance_of(c.dtype) * 2}};
  if (c.keep_lse) outcomes.push_back({"lse", bed.get(lse), want.lse, kFp32});
  return outcomes;
}

std::vector<Outcome> run_attention_grad(Bed& bed, const AttentionCase& c) {
  const HeadShape& h = c.heads;
  const double scale = static_cast<double>(scale_of(h));
  const MaskFunction mask = attention_mask(c);
  Values qkv = random_values(h.qkv_size(), 1), dout = random_values(h.out_size(), 2);
  const View qkv_view = bed.put(c.dtype, packed_shape(h), qkv);
  AttentionResult forward = reference_attention(h, qkv, scale, mask);
  const View dqkv = bed.empty(c.dtype, packed_shape(h));
  run(bed.stream(), AttentionGrad{.dqkv = dqkv,
                                  .dout = bed.put(c.dtype, out_shape(h), dout),
                                  .out = bed.put(c.dtype, out_shape(h), forward.out),
                                  .qkv = qkv_view,
                                  .lse = bed.put(DType::kF32, {h.b, h.groups * h.r, h.s}, forward.lse),
                                  .scale = scale_of(h),
                                  .dropout = attention_key(bed, c)});
  const auto loss = [&](const Values& at) {
    return inner(reference_attention(h, at, scale, mask).out, dout);
  };
  return {gradient(bed, "dqkv", bed.get(dqkv), loss, qkv, tolerance_of(c.dtype) * 4)};
}

/// A prompt, then single tokens: each step's output is the last rows of full attention.
std::vector<Outcome> run_cached_attention(Bed& bed, const HeadShape& h, DType dtype, int64_t prompt,
                                          int64_t step) {
  Values qkv = random_values(h.qkv_size(), 1, 1.5);
  const View all = bed.put(dtype, packed_shape(h), qkv);
  const AttentionResult want = reference_attention(h, qkv, static_cast<double>(scale_of(h)), {});
  const Shape cache{h.b, h.groups, h.s + 3, h.head};
  const View k_cache = bed.empty(dtype, cache), v_cache = bed.empty(dtype, cache);
  const View out = bed.empty(dtype, out_shape(h));
  for (int64_t past = 0; past < h.s;) {
    const int64_t end = std::min(h.s, past == 0 ? prompt : past + step);
    run(bed.stream(), CachedAttention{.out = out.rows(past, end),
                                      .k_cache = k_cache,
                                      .v_cache = v_cache,
                                      .qkv = all.rows(past, end),
                                      .past = past,
                                      .scale = scale_of(h)});
    past = end;
  }
  return {{"out", bed.get(out), want.out, tolerance_of(dtype) * 2}};
}

struct RopeCase {
  HeadShape heads;
  int64_t half, first_position;
  DType dtype = DType::kF32;
};

std::vector<Outcome> run_rope(Bed& bed, const RopeCase& c) {
  const HeadShape& h = c.heads;
  const int64_t positions = c.first_position + h.s;
  Values qkv = random_values(h.qkv_size(), 1), cos(static_cast<size_t>(positions * c.half)), sin = cos;
  for (size_t i = 0; i < cos.size(); ++i) {
    cos[i] = std::cos(0.7 * static_cast<double>(i));
    sin[i] = std::sin(0.7 * static_cast<double>(i));
  }
  const View view = bed.put(c.dtype, packed_shape(h), qkv);
  const View cos_view = bed.put(DType::kF32, {positions, c.half}, cos);
  const View sin_view = bed.put(DType::kF32, {positions, c.half}, sin);
  Rope op{.qkv = view, .cos = cos_view, .sin = sin_view, .first_position = c.first_position};
  run(bed.stream(), op);
  Outcome forward{"rotated", bed.get(view), reference_rope(h, qkv, cos, sin, c.half, c.first_position),
                  tolerance_of(c.dtype)};
  op.inverse = true;  // a rotation's gradient is the rotation back
  run(bed.stream(), op);
  return {forward, {"rotated back", bed.get(view), qkv, tolerance_of(c.dtype) * 2}};
}

void add_attention_cases(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& name, const AttentionCase& c) {
    const std::string type = concat(c.dtype == DType::kF32 ? " fp32 " : " bf16 ", name, " s", c.heads.s, " b",
                                    c.heads.b, " g", c.heads.groups, " r", c.heads.r, " d", c.heads.head);
    cases.push_back({"attention" + type, [c](Bed& bed) { return run_attention(bed, c); }});
    if (c.keep_lse)
      cases.push_back({"attention_grad" + type, [c](Bed& bed) { return run_attention_grad(bed, c); }});
  };
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const int64_t head : {1, 16, 17, 64, 80}) add("heads", {{33, 2, 2, 1, head}, dtype});
    for (const int64_t head : {128, 160}) add("wide heads", {{35, 1, 1, 2, head}, dtype});
    add("one position", {{1, 1, 1, 1, 8}, dtype});
    add("grouped", {{40, 2, 2, 3, 24}, dtype});
    add("long", {{150, 1, 1, 1, 32}, dtype});
    add("no lse", {{20, 1, 1, 2, 16}, dtype, 0, false});
    add("dropout", {{37, 2, 1, 2, 16}, dtype, 0.25f});
    add("grouped wide", {{69, 1, 1, 2, 96}, dtype, 0.2f});
    add("dropout long", {{141, 1, 2, 1, 8}, dtype, 0.1f});
    const std::string type = dtype == DType::kF32 ? " fp32" : " bf16";
    cases.push_back({"cached_attention" + type, [=](Bed& bed) {
                       return run_cached_attention(bed, {20, 2, 2, 3, 17}, dtype, 7, 1);
                     }});
    cases.push_back({"cached_attention blocks" + type, [=](Bed& bed) {
                       return run_cached_attention(bed, {150, 1, 1, 2, 64}, dtype, 40, 50);
                     }});
    cases.push_back({"rope" + type, [=](Bed& bed) {
                       return run_rope(bed, {{7, 2, 2, 3, 64}, 32, 0, dtype});
                     }});
    cases.push_back({"rope part" + type, [=](Bed& bed) {
                       return run_rope(bed, {{5, 1, 3, 1, 34}, 9, 4, dtype});
                     }});
  }
}

// ---- embedding
// -------------------------------------------------------------------------------------------------------------

Values some_ids(int64_t n, int64_t vocabulary) {
  std::mt19937 engine(5);
  Values ids(static_cast<size_t>(n));
  for (double& id : ids) id = static_cast<double>(engine() % static_cast<uint32_t>(vocabulary));
  return ids;
}

struct EmbeddingCase {
  int64_t s, b, h, vocabulary, first_id;
  bool positions;
  DType dtype = DType::kF32;
};
constexpr int64_t kPlaces = 12, kFirstPlace = 2;  // rows of the position table, and the position of row 0

std::vector<Outcome> run_embedding(Bed& bed, const EmbeddingCase& c) {
  Values ids = some_ids(c.s * c.b, c.vocabulary + c.first_id + 3),
         table = random_values(c.vocabulary * c.h, 1);
  Values positions = random_values(kPlaces * c.h, 2);
  const View y = bed.empty(c.dtype, {c.s, c.b, c.h});
  Embedding op{.y = y,
               .ids = bed.put(DType::kI32, {c.s, c.b}, ids),
               .table = bed.put(c.dtype, {c.vocabulary, c.h}, table),
               .first_position = kFirstPlace,
               .first_id = static_cast<int32_t>(c.first_id)};
  if (c.positions) op.positions = bed.put(c.dtype, {kPlaces, c.h}, positions);
  run(bed.stream(), op);
  Values want;
  for (int64_t row = 0; row < c.s * c.b; ++row)
    for (int64_t i = 0; i < c.h; ++i) {
      const int64_t id = static_cast<int64_t>(ids[static_cast<size_t>(row)]) - c.first_id;
      const bool mine = id >= 0 && id < c.vocabulary;
      want.push_back((mine ? table[static_cast<size_t>(id * c.h + i)] : 0) +
                     (c.positions ? positions[static_cast<size_t>((kFirstPlace + row / c.b) * c.h + i)] : 0));
    }
  return {{"y", bed.get(y), want, tolerance_of(c.dtype)}};
}

std::vector<Outcome> run_embedding_grad(Bed& bed, const EmbeddingCase& c) {
  Values ids = some_ids(c.s * c.b, c.vocabulary + c.first_id + 3), dy = random_values(c.s * c.b * c.h, 1);
  Values dtable = random_values(c.vocabulary * c.h, 2), dpositions = random_values(kPlaces * c.h, 3);
  const View table = bed.put(DType::kF32, {c.vocabulary, c.h}, dtable);
  const View positions = c.positions ? bed.put(DType::kF32, {kPlaces, c.h}, dpositions) : View{};
  run(bed.stream(), EmbeddingGrad{.dtable = table,
                                  .dpositions = positions,
                                  .dy = bed.put(c.dtype, {c.s, c.b, c.h}, dy),
                                  .ids = bed.put(DType::kI32, {c.s, c.b}, ids),
                                  .first_position = kFirstPlace,
                                  .first_id = static_cast<int32_t>(c.first_id)});
  for (int64_t row = 0; row < c.s * c.b; ++row)
    for (int64_t i = 0; i < c.h; ++i) {
      const int64_t id = static_cast<int64_t>(ids[static_cast<size_t>(row)]) - c.first_id;
      const double value = dy[static_cast<size_t>(row * c.h + i)];
      if (id >= 0 && id < c.vocabulary) dtable[static_cast<size_t>(id * c.h + i)] += value;
      if (c.positions) dpositions[static_cast<size_t>((kFirstPlace + row / c.b) * c.h + i)] += value;
    }
  std::vector<Outcome> outcomes = {{"dtable", bed.get(table), dtable, kFp32}};
  if (c.positions) outcomes.push_back({"dpositions", bed.get(positions), dpositions, kFp32});
  return outcomes;
}

void add_embedding_cases(std::vector<OpCase>& cases) {
  const EmbeddingCase many{700, 1, 3, 5, 0, false};  // each id often and far apart
  cases.push_back({"embedding_grad many", [many](Bed& bed) { return run_embedding_grad(bed, many); }});
  for (const DType dtype : {DType::kF32, DType::kBf16})
    for (const bool positions : {true, false})
      for (const int64_t h : {1, 17, 130}) {
        const std::string name =
            concat(dtype == DType::kF32 ? " fp32 " : " bf16 ", positions ? "positions " : "", h);
        const EmbeddingCase c{9, 2, h, 7, h == 17 ? 4 : 0, positions, dtype};
        cases.push_back({"embedding" + name, [c](Bed& bed) { return run_embedding(bed, c); }});
        cases.push_back({"embedding_grad" + name, [c](Bed& bed) { return run_embedding_grad(bed, c); }});
      }
}

// ---- loss
// ------------------------------------------------------------------------------------------------------------------

struct LossCase {
  int64_t rows, width, columns;
  bool mask = false, want_grad = true;
  DType dtype = DType::kF32;
  int32_t first_id = 0;
};

/// Both loss ops, as the head uses them. Row 1's target is on another rank; with a mask every third row is
/// masked.
std::vector<Outcome> run_loss(Bed& bed, const LossCase& c) {
  Values logits = random_values(c.rows * c.width, 1, 4), targets = some_ids(c.rows, c.columns);
  Values mask(static_cast<size_t>(c.rows), 1.0);
  for (size_t i = 0; c.mask && i < mask.size(); i += 3) mask[i] = 0;
  if (c.rows > 1) targets[1] = -1;
  Values ids = targets;
  for (double& id : ids) id += c.first_id;  // -1 becomes the last id of the rank before
  const float scale = 0.125f;
  const View view = bed.put(c.dtype, {c.rows, c.width}, logits);
  const View max = bed.empty(DType::kF32, {c.rows}), sum = bed.empty(DType::kF32, {c.rows});
  const View loss = bed.empty(DType::kF32, {c.rows});
  run(bed.stream(), SoftmaxStats{.max = max, .sum_exp = sum, .logits = view, .columns = c.columns});
  CrossEntropy op{.loss = loss,
                  .logits = view,
                  .max = max,
                  .sum_exp = sum,
                  .targets = bed.put(DType::kI32, {c.rows}, ids),
                  .columns = c.columns,
                  .scale = scale,
                  .want_grad = c.want_grad,
                  .first_id = c.first_id};
  if (c.mask) op.mask = bed.put(DType::kF32, {c.rows}, mask);
  run(bed.stream(), op);

  Values want_max, want_sum, want_loss;
  for (int64_t row = 0; row < c.rows; ++row) {
    const double* const x = logits.data() + row * c.width;
    const int64_t target = static_cast<int64_t>(targets[static_cast<size_t>(row)]);
    want_max.push_back(*std::max_element(x, x + c.columns));
    want_sum.push_back(std::exp(reference_nll(x, c.columns, 0) + x[0] - want_max.back()));
    want_loss.push_back(target < 0 ? 0
                                   : mask[static_cast<size_t>(row)] * reference_nll(x, c.columns, target));
  }
  std::vector<Outcome> outcomes = {{"max", bed.get(max), want_max, 0},
                                   {"sum_exp", bed.get(sum), want_sum, kFp32},
                                   {"loss", bed.get(loss), want_loss, kFp32}};
  if (!c.want_grad) {
    outcomes.push_back({"logits", bed.get(view), logits, 0});
    return outcomes;
  }
  const auto total = [&](const Values& at) {
    double result = 0;
    for (int64_t row = 0; row < c.rows; ++row) {
      const double* const x = at.data() + row * c.width;
      const int64_t target = static_cast<int64_t>(targets[static_cast<size_t>(row)]);
      const double nll = reference_nll(x, c.columns, std::max<int64_t>(target, 0)) + (target < 0 ? x[0] : 0);
      result += static_cast<double>(scale) * mask[static_cast<size_t>(row)] * nll;
    }
    return result;
  };
  outcomes.push_back(gradient(bed, "dlogits", bed.get(view), total, logits, tolerance_of(c.dtype)));
  return outcomes;
}

/// The last row's rank has no true columns: its maximum is -infinity.
std::vector<Outcome> run_softmax_rescale(Bed& bed) {
  Values sum{1.0, 2.5, 7.0, 0.0}, from{0.5, -3.0, 2.0, -std::numeric_limits<double>::infinity()};
  Values to{0.5, 1.0, 9.0, 4.0};
  const View view = bed.put(DType::kF32, {4}, sum);
  run(bed.stream(),
      SoftmaxRescale{
          .sum_exp = view, .from = bed.put(DType::kF32, {4}, from), .to = bed.put(DType::kF32, {4}, to)});
  Values want;
  for (size_t i = 0; i < 4; ++i) want.push_back(sum[i] * std::exp(from[i] - to[i]));
  return {{"sum_exp", bed.get(view), want, kFp32}};
}

void add_loss_cases(std::vector<OpCase>& cases) {
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const std::string type = dtype == DType::kF32 ? "loss fp32 " : "loss bf16 ";
    const auto add = [&](const std::string& name, const LossCase& c) {
      cases.push_back({type + name, [c](Bed& bed) { return run_loss(bed, c); }});
    };
    add("small", {5, 7, 7, false, true, dtype});
    add("padded", {6, 64, 50, false, true, dtype});
    add("masked", {9, 33, 17, true, true, dtype});
    add("no gradient", {9, 33, 17, true, false, dtype});
    add("one column", {1, 1, 1, false, true, dtype});
    add("wide", {3, 4097, 4097, false, true, dtype});
    add("second share", {7, 20, 18, true, true, dtype, 20});
  }
  cases.push_back({"softmax_rescale", run_softmax_rescale});
}

// ---- optimizer
// -------------------------------------------------------------------------------------------------------------

std::vector<Outcome> run_sum_squares(Bed& bed, DType dtype, int64_t n) {
  Values x = random_values(n, 1);
  const View out = bed.put(DType::kF64, {1}, Values{0.5});
  run(bed.stream(), SumSquares{.out = out, .x = bed.put(dtype, {n}, x)});
  return {{"out", bed.get(out), {inner(x, x) + 0.5}, 1e-13}};
}

/// Three steps from given state, in fp64 with the rule of torch.optim.AdamW.
std::vector<Outcome> run_adamw(Bed& bed, int64_t n, std::optional<DType> value) {
  Values p = random_values(n, 1), m(static_cast<size_t>(n), 0.0), v = m;
  const View master = bed.put(DType::kF32, {n}, p), m_view = bed.put(DType::kF32, {n}, m);
  const View v_view = bed.put(DType::kF32, {n}, v);
  const View value_view = value ? bed.empty(*value, {n}) : View{};
  constexpr double kLr = 1e-2, kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8, kDecay = 0.1, kScale = 0.25;
  for (int64_t step = 1; step <= 3; ++step) {
    Values grad = random_values(n, static_cast<uint32_t>(10 + step));
    run(bed.stream(), AdamW{.master = master,
                            .m = m_view,
                            .v = v_view,
                            .grad = bed.put(DType::kF32, {n}, grad),
                            .value = value_view,
                            .lr = kLr,
                            .beta1 = kBeta1,
                            .beta2 = kBeta2,
                            .eps = kEps,
                            .weight_decay = kDecay,
                            .step = step,
                            .grad_scale = static_cast<float>(kScale)});
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
  if (value) outcomes.push_back({"value", bed.get(value_view), p, kBf16});
  return outcomes;
}

void add_optimizer_cases(std::vector<OpCase>& cases) {
  for (const int64_t n : {1, 17, 4097, 100000}) {
    cases.push_back(
        {concat("sum_squares fp32 ", n), [n](Bed& bed) { return run_sum_squares(bed, DType::kF32, n); }});
    cases.push_back(
        {concat("sum_squares bf16 ", n), [n](Bed& bed) { return run_sum_squares(bed, DType::kBf16, n); }});
    cases.push_back({concat("adamw fp32 ", n), [n](Bed& bed) { return run_adamw(bed, n, std::nullopt); }});
    cases.push_back({concat("adamw bf16 ", n), [n](Bed& bed) { return run_adamw(bed, n, DType::kBf16); }});
  }
}

}  // namespace

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  add_gemm_cases(cases);
  add_norm_cases(cases);
  add_activation_cases(cases);
  add_dropout_cases(cases);
  add_attention_cases(cases);
  add_embedding_cases(cases);
  add_loss_cases(cases);
  add_optimizer_cases(cases);
  return cases;
}

}  // namespace megalith::test
