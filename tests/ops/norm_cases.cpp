#include <cmath>
#include <string>
#include <vector>

#include "tests/ops/case_parts.h"

namespace megalith::test {
namespace {

struct NormCase {
  int64_t rows, h;
  DType dtype = DType::kF32;
  bool centred = true, residual = false, keep = true;  // residual: a gradient case has `add` instead
  double offset = 0;                                   // added to x, so that its mean is far from 0
  float dropout = 0;                                   // of x, with a residual; two sequences
  RowPart part = {};                                   // not with a residual

  bool takes(int64_t row) const {
    const int64_t number = row % part.of;
    return number >= part.first && number < part.first + part.count;
  }
  int64_t taken() const { return rows / part.of * part.count; }
};

/// The norm of the rows that the case takes; the other rows are those of x.
Values normed_part(const NormCase& c, Values y, const Values& x) {
  for (size_t i = 0; i < y.size(); ++i)
    if (!c.takes(static_cast<int64_t>(i) / c.h)) y[i] = x[i];
  return y;
}

/// The numbers of the rows that the case takes, from numbers for each row.
Values of_part(const NormCase& c, const Values& all) {
  Values out;
  for (size_t row = 0; row < all.size(); ++row)
    if (c.takes(static_cast<int64_t>(row))) out.push_back(all[row]);
  return out;
}

/// What Dropout would make of x [rows, h], which are rows of two sequences.
Values masked(Values x, const NormCase& c) {
  constexpr int64_t kFirst = 9;  // dropout_key()
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / c.h;
    x[i] *= reference_mask({static_cast<double>(c.dropout), 1234, 6, 2,
                            static_cast<int64_t>(kSampleNumbers[static_cast<size_t>(row % 2)]),
                            kFirst + row / 2, static_cast<int64_t>(i) % c.h});
  }
  return x;
}

std::vector<Outcome> run_norm(Bed& bed, const NormCase& c) {
  const Shape shape = c.dropout > 0 ? Shape{c.rows / 2, 2, c.h} : Shape{c.rows, c.h};
  Values x = random_values(c.rows * c.h, 1), w = random_values(c.h, 2), b = random_values(c.h, 3);
  for (double& value : x) value += c.offset;
  Values residual = random_values(c.rows * c.h, 4);
  const View x_view = bed.put(c.dtype, shape, x), w_view = bed.put(c.dtype, {c.h}, w);
  const View b_view = bed.put(c.dtype, {c.h}, b);
  const View y = c.part.of > 1 ? bed.put(c.dtype, shape, x) : bed.empty(c.dtype, shape);
  const View mean = c.keep ? bed.empty(DType::kF32, {c.taken()}) : View{};
  const View rstd = c.keep ? bed.empty(DType::kF32, {c.taken()}) : View{};
  const View residual_view = c.residual ? bed.put(c.dtype, shape, residual) : View{};
  View sum = c.residual ? bed.empty(c.dtype, shape) : View{};
  if (c.dropout > 0) sum = x_view;  // sum shares x's memory
  const DropoutKey key = c.dropout > 0 ? dropout_key(bed, 2, c.dropout) : DropoutKey{};
  const auto run_op = [&](auto op) {
    op.rstd = rstd;
    op.residual = residual_view;
    op.sum = sum;
    op.dropout = key;
    op.part = c.part;
    run(bed.stream(), op);
  };
  if (c.centred)
    run_op(LayerNorm{.y = y, .x = x_view, .w = w_view, .b = b_view, .mean = mean});
  else
    run_op(RmsNorm{.y = y, .x = x_view, .w = w_view});
  std::vector<Outcome> outcomes;
  if (c.residual) {
    outcomes.push_back({"sum", bed.get(sum), plus(masked(x, c), residual), tolerance_of(c.dtype)});
    x = bed.get(sum);  // the op normalizes the sum as it is stored, rounded
  }
  const NormResult want = reference_norm({c.h, static_cast<double>(1e-5f), c.centred}, x, w, b);
  const double precision = tolerance_of(c.dtype) * (1 + std::abs(c.offset));
  outcomes.push_back({"y", bed.get(y), normed_part(c, want.y, x), precision});
  if (c.keep && c.centred) outcomes.push_back({"mean", bed.get(mean), of_part(c, want.mean), kFp32});
  if (c.keep) outcomes.push_back({"rstd", bed.get(rstd), of_part(c, want.rstd), precision});
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
  const View mean = bed.put(DType::kF32, {c.taken()}, of_part(c, kept.mean)),
             rstd = bed.put(DType::kF32, {c.taken()}, of_part(c, kept.rstd));
  const View dx = bed.put(c.dtype, shape, dy);  // dx shares dy's memory
  const View dw_view = c.keep ? bed.put(DType::kF32, {c.h}, dw) : View{};
  const View db_view = c.keep ? bed.put(DType::kF32, {c.h}, db) : View{};
  const View add_view = c.residual ? bed.put(c.dtype, shape, add) : View{};
  const auto run_op = [&](auto op) {
    op.dx = dx;
    op.dw = dw_view;
    op.dy = dx;
    op.x = x_view;
    op.w = w_view;
    op.rstd = rstd;
    op.add = add_view;
    op.part = c.part;
    run(bed.stream(), op);
  };
  if (c.centred) {
    LayerNormGrad op{};
    op.db = db_view;
    op.mean = mean;
    run_op(op);
  } else {
    run_op(RmsNormGrad{});
  }
  const auto result = [&](const Values& in, const Values& weight, const Values& bias) {
    return normed_part(c, reference_norm(norm, in, weight, bias).y, in);
  };
  const auto loss_of_x = [&](const Values& at) {
    return inner(result(at, w, b), dy) + (c.residual ? inner(at, add) : 0);
  };
  const double precision = tolerance_of(c.dtype) * 2;
  std::vector<Outcome> outcomes = {gradient(bed, "dx", bed.get(dx), loss_of_x, x, precision)};
  outcomes[0].size += 1;  // the size of dy w, from which its mean is subtracted
  if (!c.keep) return outcomes;
  const auto loss_of_w = [&](const Values& at) { return inner(result(x, at, b), dy) + inner(at, dw); };
  outcomes.push_back(gradient(bed, "dw", bed.get(dw_view), loss_of_w, w, kFp32 * 2));
  if (!c.centred) return outcomes;
  const auto loss_of_b = [&](const Values& at) { return inner(result(x, w, at), dy) + inner(at, db); };
  outcomes.push_back(gradient(bed, "db", bed.get(db_view), loss_of_b, b, kFp32));
  return outcomes;
}

}  // namespace

void add_norm_cases(std::vector<OpCase>& cases, const Types& types) {
  const auto add = [&](const std::string& name, const NormCase& c) {
    const std::string type = concat(name_of(c.dtype), " ", name, " ", c.rows, "x", c.h);
    const std::string op = c.centred ? "layer_norm" : "rms_norm";
    cases.push_back({op + " " + type, [c](Bed& bed) { return run_norm(bed, c); }});
    if (c.offset == 0 && c.dropout == 0)
      cases.push_back({op + "_grad " + type, [c](Bed& bed) { return run_norm_grad(bed, c); }});
  };
  for (const bool centred : {true, false})
    for (const DType dtype : types) {
      add("plain", {5, 64, dtype, centred});
      add("residual", {37, 17, dtype, centred, true});
      add("nothing kept", {3, 33, dtype, centred, false, false});
      add("one", {1, 1, dtype, centred});
      add("wide", {2, 4097, dtype, centred, true});
      add("many rows", {1100, 3, dtype, centred});
      add("no rows", {0, 8, dtype, centred});
      add("dropout", {10, 17, dtype, centred, true, true, 0, 0.3f});
      add("dropout of several teams", {70, 64, dtype, centred, true, true, 0, 0.3f});
      add("several teams", {150, 40, dtype, centred});
      add("wide teams", {70, 1032, dtype, centred, true});
      add("widest team", {3, 4096, dtype, centred, true});
      add("wider than a team", {2, 8200, dtype, centred, true});
      add("queries", {60, 64, dtype, centred, false, true, 0, 0, {0, 3, 5}});
      add("keys", {330, 17, dtype, centred, false, true, 0, 0, {3, 1, 5}});
      add("keys of several teams", {1000, 128, dtype, centred, false, true, 0, 0, {3, 1, 5}});
      if (dtype == DType::kF32) add("far mean", {4, 129, dtype, centred, false, true, 30.0});
    }
}

}  // namespace megalith::test
