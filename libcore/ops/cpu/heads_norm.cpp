#include "libcore/ops/cpu/heads_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "libcore/ops/cpu/arguments.h"
#include "libcore/ops/cpu/storage.h"
#include "libcore/ops/cpu/threads.h"

namespace megalith::cpu {
namespace {

constexpr int64_t kPiece = 256;  // elements that are converted at a time

/// Adjacent elements of a row of a packed QKV, all of query heads or all of a key head.
struct Piece {
  int kind;        // 0: queries, 1: keys
  int64_t place;   // in the row
  int64_t weight;  // in the weight of this kind
  int64_t size;    // at most kPiece
};

/// The shape of a packed QKV [s, b, groups, r + 2, head], as rows of s * b positions.
struct Packed {
  int64_t rows, groups, r, head;
  explicit Packed(const Shape& s) : rows(s[0] * s[1]), groups(s[2]), r(s[3] - 2), head(s[4]) {}
  int64_t columns() const { return groups * (r + 2) * head; }
  int64_t value(int64_t group) const { return (group * (r + 2) + r + 1) * head; }
};

/// The pieces of all queries and keys of a row.
std::vector<Piece> pieces_of(const Packed& x) {
  std::vector<Piece> pieces;
  for (int64_t group = 0; group < x.groups; ++group)
    for (const int kind : {0, 1}) {
      const int64_t first = (group * (x.r + 2) + (kind == 0 ? 0 : x.r)) * x.head,
                    size = (kind == 0 ? x.r : 1) * x.head;
      for (int64_t at = 0; at < size; at += kPiece)
        pieces.push_back({kind, first + at, group * size + at, std::min(kPiece, size - at)});
    }
  return pieces;
}

/// Up to kPiece elements, converted.
class Floats {
 public:
  Floats(const Kernels& kernels, const ConstView& from, int64_t place, int64_t size) {
    kernels.copy[kF32][storage_of(from.dtype)](values_.data(), at(from, place), size);
  }
  float operator[](int64_t i) const { return values_[static_cast<size_t>(i)]; }
  float& operator[](int64_t i) { return values_[static_cast<size_t>(i)]; }
  void put(const Kernels& kernels, const View& to, int64_t place, int64_t size) const {
    kernels.copy[storage_of(to.dtype)][kF32](at(to, place), values_.data(), size);
  }

 private:
  std::array<float, kPiece> values_;
};

/// 1 / sqrt(mean of squares + eps) of a row's queries or keys.
float rstd_of(const auto& op, int kind, int64_t row, int64_t rows) {
  const float square = op.squares.template as<float>()[kind * rows + row];
  const auto width = static_cast<float>(kind == 0 ? op.q_width : op.k_width);
  return 1.0f / std::sqrt(square / width + op.eps);
}

const ConstView& weight_of(const auto& op, int kind) {
  return kind == 0 ? op.q_w : op.k_w;
}

}  // namespace

void HeadsNormRunner::run(const HeadSums& op) const {
  const Packed x(op.x.shape);
  const std::vector<Piece> pieces = pieces_of(x);
  float* const sums = op.sums.as<float>();
  for_each_range(x.rows, range_rows(x.columns()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      double sum[2] = {};
      for (const Piece& piece : pieces) {
        const int64_t place = row * x.columns() + piece.place;
        const Floats in(kernels_, op.x, place, piece.size);
        if (!op.d) {
          for (int64_t i = 0; i < piece.size; ++i) sum[piece.kind] += double{in[i]} * in[i];
          continue;
        }
        const Floats d(kernels_, op.d, place, piece.size);
        const Floats w(kernels_, weight_of(op, piece.kind), piece.weight, piece.size);
        for (int64_t i = 0; i < piece.size; ++i) sum[piece.kind] += double{d[i]} * w[i] * in[i];
      }
      for (const int kind : {0, 1}) sums[kind * x.rows + row] = static_cast<float>(sum[kind]);
    }
  });
}

void HeadsNormRunner::run(const HeadsNorm& op) const {
  const Packed x(op.x.shape);
  const std::vector<Piece> pieces = pieces_of(x);
  const size_t value_bytes = static_cast<size_t>(x.head) * size_of(op.x.dtype);
  for_each_range(x.rows, range_rows(x.columns()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float rstd[2] = {rstd_of(op, 0, row, x.rows), rstd_of(op, 1, row, x.rows)};
      for (const Piece& piece : pieces) {
        const int64_t place = row * x.columns() + piece.place;
        Floats y(kernels_, op.x, place, piece.size);
        const Floats w(kernels_, weight_of(op, piece.kind), piece.weight, piece.size);
        for (int64_t i = 0; i < piece.size; ++i) y[i] *= rstd[piece.kind] * w[i];
        y.put(kernels_, op.y, place, piece.size);
      }
      for (int64_t group = 0; op.y.data != op.x.data && group < x.groups; ++group) {
        const int64_t place = row * x.columns() + x.value(group);
        std::memcpy(at(op.y, place), at(op.x, place), value_bytes);
      }
    }
  });
}

// Each job takes the same piece of all rows, so that it alone adds to its part of the weight's gradient, in
// the order of rows.
void HeadsNormRunner::run(const HeadsNormGrad& op) const {
  const Packed x(op.x.shape);
  const std::vector<Piece> pieces = pieces_of(x);
  for_each_block(static_cast<int64_t>(pieces.size()), [&](int64_t job) {
    const auto [kind, place, weight, size] = pieces[static_cast<size_t>(job)];
    const auto width = static_cast<float>(kind == 0 ? op.q_width : op.k_width);
    const Floats w(kernels_, weight_of(op, kind), weight, size);
    std::array<float, kPiece> dw = {};
    for (int64_t row = 0; row < x.rows; ++row) {
      const float rstd = rstd_of(op, kind, row, x.rows);
      const float along = op.dots.as<float>()[kind * x.rows + row] * rstd * rstd / width;
      const Floats in(kernels_, op.x, row * x.columns() + place, size);
      Floats d(kernels_, op.d, row * x.columns() + place, size);
      for (int64_t i = 0; i < size; ++i) {
        dw[static_cast<size_t>(i)] += d[i] * in[i] * rstd;
        d[i] = rstd * (d[i] * w[i] - in[i] * along);
      }
      d.put(kernels_, op.d, row * x.columns() + place, size);
    }
    const View& total = kind == 0 ? op.dq_w : op.dk_w;
    for (int64_t i = 0; total && i < size; ++i) total.as<float>()[weight + i] += dw[static_cast<size_t>(i)];
  });
}

}  // namespace megalith::cpu
