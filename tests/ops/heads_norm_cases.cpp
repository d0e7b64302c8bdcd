#include <string>
#include <vector>

#include "tests/ops/case_parts.h"
#include "tests/ops/reference.h"

namespace megalith::test {
namespace {

constexpr double kEps = 1e-5;

struct HeadsCase {
  int64_t s, b, groups, r, head;
  DType dtype = DType::kF32;
  bool in_place = false, frozen = false;
  int64_t ranks = 1;  // each with heads whose sums are those here

  Shape shape() const { return {s, b, groups, r + 2, head}; }
  int64_t rows() const { return s * b; }
  int64_t columns() const { return groups * (r + 2) * head; }
  int64_t keys() const { return groups * head; }
  int64_t queries() const { return r * keys(); }
};

/// 0: a query's column of a packed row, 1: a key's, 2: a value's.
int kind_of(const HeadsCase& c, int64_t column) {
  const int64_t slot = column / c.head % (c.r + 2);
  return slot < c.r ? 0 : slot == c.r ? 1 : 2;
}

/// The columns of one kind, row by row.
Values taken(const HeadsCase& c, const Values& x, int kind) {
  Values out;
  for (size_t i = 0; i < x.size(); ++i)
    if (kind_of(c, static_cast<int64_t>(i) % c.columns()) == kind) out.push_back(x[i]);
  return out;
}

/// x with its queries and keys normalized, each kind as one vector of its row.
Values normed(const HeadsCase& c, const Values& x, const Values& q_w, const Values& k_w) {
  Values parts[2];
  for (const int kind : {0, 1}) {
    const Values& w = kind == 0 ? q_w : k_w;
    parts[kind] = reference_norm({static_cast<int64_t>(w.size()), kEps, false}, taken(c, x, kind), w, w).y;
  }
  Values out = x;
  size_t at[2] = {};
  for (size_t i = 0; i < x.size(); ++i)
    if (const int kind = kind_of(c, static_cast<int64_t>(i) % c.columns()); kind < 2)
      out[i] = parts[kind][at[kind]++];
  return out;
}

/// The sums over rows of a kind's products a b, [2, rows].
Values sums_of(const HeadsCase& c, const Values& a, const Values& b) {
  Values sums(static_cast<size_t>(2 * c.rows()));
  for (size_t i = 0; i < a.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / c.columns();
    if (const int kind = kind_of(c, static_cast<int64_t>(i) % c.columns()); kind < 2)
      sums[static_cast<size_t>(kind * c.rows() + row)] += a[i] * b[i];
  }
  return sums;
}

/// The factor of each element: its head's weight; 0 for values.
Values weights_of(const HeadsCase& c, const Values& q_w, const Values& k_w) {
  Values out;
  for (int64_t row = 0; row < c.rows(); ++row) {
    size_t at[2] = {};
    for (int64_t column = 0; column < c.columns(); ++column) {
      const int kind = kind_of(c, column);
      out.push_back(kind == 2 ? 0 : (kind == 0 ? q_w : k_w)[at[kind]++]);
    }
  }
  return out;
}

struct Inputs {
  Values x, q_w, k_w;
  View x_view, q_view, k_view;
  Inputs(Bed& bed, const HeadsCase& c)
      : x(random_values(c.rows() * c.columns(), 1)),
        q_w(random_values(c.queries(), 2)),
        k_w(random_values(c.keys(), 3)),
        x_view(bed.put(c.dtype, c.shape(), x)),
        q_view(bed.put(c.dtype, {c.queries()}, q_w)),
        k_view(bed.put(c.dtype, {c.keys()}, k_w)) {}
};

/// What all ranks together have: `ranks` times the sums here.
Values times(Values values, int64_t ranks) {
  for (double& value : values) value *= static_cast<double>(ranks);
  return values;
}

std::vector<Outcome> run_heads_norm(Bed& bed, const HeadsCase& c) {
  const Inputs in(bed, c);
  const View sums = bed.empty(DType::kF32, {2, c.rows()});
  run(bed.stream(), HeadSums{.sums = sums, .x = in.x_view});
  const Values want = sums_of(c, in.x, in.x);
  std::vector<Outcome> outcomes = {{"squares", bed.get(sums), want, kFp32}};
  const View y = c.in_place ? in.x_view : bed.empty(c.dtype, c.shape());
  run(bed.stream(), HeadsNorm{.y = y,
                              .x = in.x_view,
                              .q_w = in.q_view,
                              .k_w = in.k_view,
                              .squares = bed.put(DType::kF32, {2, c.rows()}, times(want, c.ranks)),
                              .q_width = c.queries() * c.ranks,
                              .k_width = c.keys() * c.ranks,
                              .eps = static_cast<float>(kEps)});
  outcomes.push_back({"y", bed.get(y), normed(c, in.x, in.q_w, in.k_w), tolerance_of(c.dtype)});
  return outcomes;
}

std::vector<Outcome> run_heads_norm_grad(Bed& bed, const HeadsCase& c) {
  const Inputs in(bed, c);
  Values dy = random_values(c.rows() * c.columns(), 4);
  const Values dq = random_values(c.queries(), 5), dk = random_values(c.keys(), 6);
  const View d = bed.put(c.dtype, c.shape(), dy), dots = bed.empty(DType::kF32, {2, c.rows()});
  run(bed.stream(), HeadSums{.sums = dots, .x = in.x_view, .d = d, .q_w = in.q_view, .k_w = in.k_view});
  Values weighted = weights_of(c, in.q_w, in.k_w);
  for (size_t i = 0; i < dy.size(); ++i) weighted[i] *= dy[i];
  const Values along = sums_of(c, weighted, in.x);
  std::vector<Outcome> outcomes = {{"dots", bed.get(dots), along, kFp32 * 4}};
  const View dq_view = c.frozen ? View{} : bed.put(DType::kF32, {c.queries()}, Values(dq)),
             dk_view = c.frozen ? View{} : bed.put(DType::kF32, {c.keys()}, Values(dk));
  run(bed.stream(),
      HeadsNormGrad{.d = d,
                    .dq_w = dq_view,
                    .dk_w = dk_view,
                    .x = in.x_view,
                    .q_w = in.q_view,
                    .k_w = in.k_view,
                    .squares = bed.put(DType::kF32, {2, c.rows()}, times(sums_of(c, in.x, in.x), c.ranks)),
                    .dots = bed.put(DType::kF32, {2, c.rows()}, times(along, c.ranks)),
                    .q_width = c.queries() * c.ranks,
                    .k_width = c.keys() * c.ranks,
                    .eps = static_cast<float>(kEps)});
  const double precision = tolerance_of(c.dtype) * 2;
  const auto loss_of_x = [&](const Values& at) { return inner(normed(c, at, in.q_w, in.k_w), dy); };
  outcomes.push_back(gradient(bed, "d", bed.get(d), loss_of_x, in.x, precision));
  if (c.frozen) return outcomes;
  const auto loss_of_q = [&](const Values& at) {
    return inner(normed(c, in.x, at, in.k_w), dy) + inner(at, dq);
  };
  const auto loss_of_k = [&](const Values& at) {
    return inner(normed(c, in.x, in.q_w, at), dy) + inner(at, dk);
  };
  outcomes.push_back(gradient(bed, "dq_w", bed.get(dq_view), loss_of_q, in.q_w, kFp32 * 8));
  outcomes.push_back(gradient(bed, "dk_w", bed.get(dk_view), loss_of_k, in.k_w, kFp32 * 8));
  return outcomes;
}

}  // namespace

void add_heads_norm_cases(std::vector<OpCase>& cases, const Types& types) {
  std::vector<HeadsCase> all = {
      {.s = 5, .b = 2, .groups = 3, .r = 2, .head = 7},
      {.s = 1, .b = 1, .groups = 1, .r = 1, .head = 1},
      {.s = 70, .b = 1, .groups = 2, .r = 3, .head = 100, .in_place = true},  // pieces and blocks of rows
      {.s = 3, .b = 1, .groups = 2, .r = 1, .head = 8, .frozen = true, .ranks = 2},
      {.s = 0, .b = 1, .groups = 2, .r = 1, .head = 8}};
  for (const DType dtype : types)
    for (HeadsCase c : all) {
      c.dtype = dtype;
      const std::string name = concat(name_of(dtype), " ", c.shape(), c.in_place ? " in place" : "",
                                      c.frozen ? " frozen" : "", " ranks ", c.ranks);
      cases.push_back({"heads_norm " + name, [c](Bed& bed) { return run_heads_norm(bed, c); }});
      cases.push_back({"heads_norm_grad " + name, [c](Bed& bed) { return run_heads_norm_grad(bed, c); }});
    }
}

}  // namespace megalith::test
