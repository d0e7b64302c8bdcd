#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/ops/case_parts.h"

namespace megalith::test {
namespace {

struct EmbeddingCase {
  int64_t s, b, h, vocabulary, first_id;
  bool positions;
  DType dtype = DType::kF32;
  RowPositions rows = {.first = 2};
  DType table = dtype, places = dtype;  // types of the tables
};
constexpr int64_t kPlaces = 20;  // rows of the position table

std::vector<Outcome> run_embedding(Bed& bed, const EmbeddingCase& c) {
  Values ids = some_ids(c.s * c.b, c.vocabulary + c.first_id + 3),
         table = random_values(c.vocabulary * c.h, 1);
  Values positions = random_values(kPlaces * c.h, 2);
  const View y = bed.empty(c.dtype, {c.s, c.b, c.h});
  Embedding op{.y = y,
               .ids = bed.put(DType::kI32, {c.s, c.b}, ids),
               .table = bed.put(c.table, {c.vocabulary, c.h}, table),
               .rows = c.rows,
               .first_id = static_cast<int32_t>(c.first_id)};
  if (c.positions) op.positions = bed.put(c.places, {kPlaces, c.h}, positions);
  run(bed.stream(), op);
  Values want;
  for (int64_t row = 0; row < c.s * c.b; ++row)
    for (int64_t i = 0; i < c.h; ++i) {
      const int64_t id = static_cast<int64_t>(ids[static_cast<size_t>(row)]) - c.first_id;
      const bool mine = id >= 0 && id < c.vocabulary;
      want.push_back((mine ? table[static_cast<size_t>(id * c.h + i)] : 0) +
                     (c.positions ? positions[static_cast<size_t>(c.rows.at(row / c.b) * c.h + i)] : 0));
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
                                  .rows = c.rows,
                                  .first_id = static_cast<int32_t>(c.first_id)});
  for (int64_t row = 0; row < c.s * c.b; ++row)
    for (int64_t i = 0; i < c.h; ++i) {
      const int64_t id = static_cast<int64_t>(ids[static_cast<size_t>(row)]) - c.first_id;
      const double value = dy[static_cast<size_t>(row * c.h + i)];
      if (id >= 0 && id < c.vocabulary) dtable[static_cast<size_t>(id * c.h + i)] += value;
      if (c.positions) dpositions[static_cast<size_t>(c.rows.at(row / c.b) * c.h + i)] += value;
    }
  std::vector<Outcome> outcomes = {{"dtable", bed.get(table), dtable, kFp32}};
  if (c.positions) outcomes.push_back({"dpositions", bed.get(positions), dpositions, kFp32});
  return outcomes;
}

struct LossCase {
  int64_t rows, width, columns;
  bool mask = false, want_grad = true;
  DType dtype = DType::kF32;
  int32_t first_id = 0;
  bool whole = false;  // SoftmaxLoss, which has no first_id
};

/// Runs SoftmaxStats and CrossEntropy, or SoftmaxLoss, as the head does. Another rank has row 1's target;
/// with a mask, every third row is masked, and a part of the scale is in memory. The logits of padding
/// columns are larger than all others.
std::vector<Outcome> run_loss(Bed& bed, const LossCase& c) {
  Values logits = random_values(c.rows * c.width, 1, 4), targets = some_ids(c.rows, c.columns);
  for (size_t i = 0; i < logits.size(); ++i)
    if (static_cast<int64_t>(i) % c.width >= c.columns) logits[i] = 64;
  Values mask(static_cast<size_t>(c.rows), 1.0);
  for (size_t i = 0; c.mask && i < mask.size(); i += 3) mask[i] = 0;
  if (c.rows > 1) targets[1] = -1;
  Values ids = targets;
  for (double& id : ids) id += c.first_id;  // target -1 becomes the last id of the previous rank
  const float scale = 0.125f;
  const View view = bed.put(c.dtype, {c.rows, c.width}, logits);
  const View max = bed.empty(DType::kF32, {c.rows}), sum = bed.empty(DType::kF32, {c.rows});
  const View loss = bed.empty(DType::kF32, {c.rows});
  SoftmaxLoss op{.loss = loss,
                 .logits = view,
                 .max = max,
                 .sum_exp = sum,
                 .targets = bed.put(DType::kI32, {c.rows}, ids),
                 .columns = c.columns,
                 .scale = scale,
                 .want_grad = c.want_grad};
  if (c.mask) {
    op.mask = bed.put(DType::kF32, {c.rows}, mask);
    op.scale = 2 * scale;
    op.scale_at = bed.put(DType::kF32, {1}, Values{0.5});
  }
  if (c.whole) {
    run(bed.stream(), op);
  } else {
    run(bed.stream(), op.stats());
    CrossEntropy share = op.cross_entropy();
    share.first_id = c.first_id;
    run(bed.stream(), share);
  }

  Values want_max, want_sum, want_loss;
  for (int64_t row = 0; row < c.rows; ++row) {
    const double* const x = logits.data() + row * c.width;
    const int64_t target = static_cast<int64_t>(targets[static_cast<size_t>(row)]);
    want_max.push_back(*std::max_element(x, x + c.columns));
    want_sum.push_back(std::exp(reference_nll(x, c.columns, 0) + x[0] - want_max.back()));
    want_loss.push_back(target < 0 ? 0
                                   : mask[static_cast<size_t>(row)] * reference_nll(x, c.columns, target));
  }
  // A sum of positive terms rounds with each of them; lanes add up to thousands one after the other.
  const double of_sum = kFp32 * std::max(1.0, static_cast<double>(c.columns) / 4096);
  std::vector<Outcome> outcomes = {{"max", bed.get(max), want_max, 0},
                                   {"sum_exp", bed.get(sum), want_sum, of_sum},
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
  constexpr double kHalfStep = 0x1p-25;  // half of fp16's smallest step: the rounding error of tiny gradients
  if (c.dtype == DType::kF16) outcomes.back().size += kHalfStep / kFp16;
  return outcomes;
}

/// In the last row, the rank has no real columns, so its maximum is -infinity.
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

}  // namespace

void add_embedding_cases(std::vector<OpCase>& cases, const Types& types) {
  const EmbeddingCase many{700, 1, 3, 5, 0, false};  // each id occurs often and far apart
  cases.push_back({"embedding_grad many", [many](Bed& bed) { return run_embedding_grad(bed, many); }});
  // More rows than are sorted at a time, of many ids; and ids that fill several tiles of rows.
  const EmbeddingCase several{1100, 2, 8, 700, 3, false}, hot{300, 2, 24, 3, 1, false};
  cases.push_back(
      {"embedding_grad several", [several](Bed& bed) { return run_embedding_grad(bed, several); }});
  cases.push_back({"embedding_grad hot", [hot](Bed& bed) { return run_embedding_grad(bed, hot); }});
  for (const DType table : types)
    for (const DType places : types) {
      const EmbeddingCase c{9, 2, 17, 7, 4, true, DType::kF32, {.first = 2}, table, places};
      cases.push_back({concat("embedding of ", name_of(table), " and ", name_of(places)),
                       [c](Bed& bed) { return run_embedding(bed, c); }});
    }
  for (const DType dtype : types)
    for (const bool positions : {true, false})
      for (const int64_t h : {1, 17, 64, 130}) {
        const std::string name = concat(" ", name_of(dtype), " ", positions ? "positions " : "", h);
        const EmbeddingCase c{9, 2, h, 7, h == 17 ? 4 : 0, positions, dtype};
        EmbeddingCase spans = c;
        spans.rows = {.first = 1, .split = 4, .jump = 6};
        if (positions && h == 17) {
          cases.push_back(
              {"embedding context" + name, [spans](Bed& bed) { return run_embedding(bed, spans); }});
          cases.push_back({"embedding_grad context" + name,
                           [spans](Bed& bed) { return run_embedding_grad(bed, spans); }});
        }
        cases.push_back({"embedding" + name, [c](Bed& bed) { return run_embedding(bed, c); }});
        cases.push_back({"embedding_grad" + name, [c](Bed& bed) { return run_embedding_grad(bed, c); }});
      }
}

void add_loss_cases(std::vector<OpCase>& cases, const Types& types) {
  for (const DType dtype : types) {
    const std::string type = concat("loss ", name_of(dtype), " ");
    const auto add = [&](const std::string& name, LossCase c) {
      cases.push_back({type + name, [c](Bed& bed) { return run_loss(bed, c); }});
      if (c.first_id != 0) return;
      c.whole = true;
      cases.push_back({"softmax_" + type + name, [c](Bed& bed) { return run_loss(bed, c); }});
    };
    add("small", {5, 7, 7, false, true, dtype});
    add("padded", {6, 64, 50, false, true, dtype});
    add("padded to 128", {4, 384, 257, true, true, dtype});
    add("masked", {9, 33, 17, true, true, dtype});
    add("no gradient", {9, 33, 17, true, false, dtype});
    add("one column", {1, 1, 1, false, true, dtype});
    add("wide", {3, 4097, 4097, false, true, dtype});
    add("wide and padded", {3, 4104, 4097, true, true, dtype});
    add("wider than a block holds", {2, 51200, 51111, false, true, dtype});
    add("second share", {7, 20, 18, true, true, dtype, 20});
  }
  cases.push_back({"softmax_rescale", run_softmax_rescale});
}

}  // namespace megalith::test
