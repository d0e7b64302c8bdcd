#include "libcore/train/log/op_table.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "libcore/base/figures/text_table.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/ops/backend/backend.h"

namespace megalith {
namespace {

/// The shortest of five times, in seconds. The first call may load a library or make a kernel, so it does not
/// count.
double shortest(const std::function<void()>& work) {
  work();
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const double seconds = seconds_since(start);
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

/// A matrix of ones in memory of its own.
struct Ones {
  Ones(Stream& stream, DType dtype, const Shape& shape)
      : memory(stream.backend().allocate(static_cast<size_t>(shape.elements()) * size_of(dtype))),
        view{memory.data.get(), dtype, shape} {
    stream.fill(view, 1);
  }
  Memory memory;
  View view;
};

double product_rate(Stream& stream, const RoofShapes& s) {
  const Ones x(stream, s.dtype, {s.rows, s.in}), w(stream, s.dtype, {s.out, s.in}),
      y(stream, s.dtype, {s.rows, s.out});
  const Gemm product{.c = y.view, .a = x.view, .b = w.view, .trans_b = true};
  return product.cost().flops / shortest([&] { stream.backend().run(stream, product); });
}

double read_rate(Stream& stream, const ConstView& matrix) {
  if (!matrix) return 0;
  const int64_t n = matrix.shape.rows(), k = matrix.shape.back();
  const Ones x(stream, matrix.dtype, {1, k}), y(stream, DType::kF32, {1, n});
  const Gemm product{.c = y.view, .a = x.view, .b = matrix.as_shape({n, k}), .trans_b = true};
  return product.cost().bytes / shortest([&] { stream.backend().run(stream, product); });
}

}  // namespace

Roofs measure_roofs(Stream& stream, const RoofShapes& shapes) {
  return {.flops = product_rate(stream, shapes), .bytes = read_rate(stream, shapes.matrix)};
}

OpTable::OpTable(const std::map<std::string, Trace::Entry>& ops, const Roofs& best, int64_t steps)
    : roofs(best) {
  const auto count = static_cast<double>(std::max<int64_t>(steps, 1));
  for (const auto& [name, entry] : ops) {
    if (entry.seconds <= 0) continue;
    const double by_products = best.flops > 0 ? entry.cost.flops / best.flops : 0,
                 by_bytes = best.bytes > 0 ? entry.cost.bytes / best.bytes : 0;
    rows.push_back({.op = name,
                    .calls = static_cast<double>(entry.calls) / count,
                    .ms = entry.seconds * 1e3 / count,
                    .gflops = entry.cost.flops / entry.seconds * 1e-9,
                    .gigabytes = entry.cost.bytes / entry.seconds * 1e-9,
                    .share = std::max(by_products, by_bytes) / entry.seconds});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.ms > b.ms; });
}

std::string OpTable::text() const {
  TextTable table{.rows = {{"op", "calls a step", "ms a step", "GFLOP/s", "GB/s", "of the roof"}},
                  .texts = {0}};
  for (const Row& row : rows)
    table.rows.push_back({row.op, format_fixed(row.calls, 1), format_fixed(row.ms, 2),
                          format_fixed(row.gflops, 1), format_fixed(row.gigabytes, 1),
                          concat(format_fixed(100 * row.share, 0), " %")});
  return concat("ops of the traced steps; the roof is a product at ", format_fixed(roofs.flops * 1e-9, 1),
                " GFLOP/s, or reading at ", format_fixed(roofs.bytes * 1e-9, 1), " GB/s:\n",
                table_text(table, 0));
}

Json to_json(const OpTable& table) {
  Json::Array ops;
  for (const OpTable::Row& row : table.rows)
    ops.push_back(Json(Json::Object{{"op", row.op},
                                    {"calls_per_step", row.calls},
                                    {"ms_per_step", row.ms},
                                    {"gflops", row.gflops},
                                    {"gb_per_s", row.gigabytes},
                                    {"share_of_roof", row.share}}));
  return Json(Json::Object{{"product_gflops", table.roofs.flops * 1e-9},
                           {"read_gb_per_s", table.roofs.bytes * 1e-9},
                           {"ops", Json(std::move(ops))}});
}

}  // namespace megalith
