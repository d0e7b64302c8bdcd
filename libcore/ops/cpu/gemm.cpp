#include "libcore/ops/cpu/gemm.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "libcore/ops/cpu/elements.h"
#include "libcore/ops/cpu/storage.h"
#include "libcore/ops/cpu/threads.h"
#include "libcore/ops/cpu/wide_product.h"

namespace megalith::cpu {

void GemmRunner::project(const ProjectArgs& args, Storage storage, int64_t out) const {
  constexpr int64_t kBytes = 1 << 16;  // bytes of weights per block, which take some microseconds
  const int64_t width = storage == kF32 ? 4 : storage == kI8 ? 1 : 2;
  const int64_t rows = std::max<int64_t>(4, kBytes / (args.columns * width) / 4 * 4);
  const auto kernel = kernels_.project[storage];
  team_.for_each_block((out + rows - 1) / rows,
                       [&](int64_t block) { kernel(args, block * rows, std::min(out, (block + 1) * rows)); });
}

/// Computes c = a b^T (+ bias or + c) in fp32, for an a with few rows.
void GemmRunner::multiply_rows(const Gemm& op) const {
  const Storage out = storage_of(op.c.dtype), in = storage_of(op.a.dtype);
  const bool direct = out == kF32 && !op.accumulate;
  const int64_t inputs = in == kF32 ? 0 : op.a.elements();
  float* const block = thread_scratch(static_cast<size_t>(inputs + (direct ? 0 : op.c.elements())));
  float* const y = direct ? op.c.as<float>() : block + inputs;
  if (in != kF32) kernels_.copy[kF32][in](block, op.a.data, op.a.elements());
  project({.y = y,
           .x = in == kF32 ? op.a.as<float>() : block,
           .w = op.b.data,
           .scales = nullptr,
           .bias = nullptr,
           .rows = op.m(),
           .columns = op.k(),
           .x_stride = op.k(),
           .y_stride = op.n()},
          in, op.n());
  if (op.bias)
    for (int64_t row = 0; row < op.m(); ++row)
      kernels_.add[kF32][storage_of(op.bias.dtype)](y + row * op.n(), op.bias.data, op.n());
  if (op.accumulate) kernels_.add[kF32][out](y, op.c.data, op.c.elements());
  if (!direct) kernels_.copy[out][kF32](op.c.data, y, op.c.elements());
}

void GemmRunner::project_many(const Project& op) {
  if (op.w.dtype == DType::kF32)
    return run(Gemm{.c = op.y, .a = op.x, .b = op.w, .bias = op.bias, .trans_b = true});
  if (op.w.dtype == DType::kF16 || !products().has_bf16()) return project_panels(op);
  const auto rounded = std::make_unique_for_overwrite<uint16_t[]>(static_cast<size_t>(op.x.elements()));
  const View x{rounded.get(), DType::kBf16, op.x.shape};
  copy_elements(kernels_, x, op.x);
  op.w.dtype == DType::kI8 ? project_int8(op, x) : project_bf16(op, x);
}

void GemmRunner::project_bf16(const Project& op, ConstView x) {
  run(Gemm{.c = op.y, .a = x, .b = op.w, .bias = op.bias, .trans_b = true});
}

/// The number of rows of weights that are converted at once, few enough to stay in the cache.
int64_t panel_rows(const Project& op) {
  constexpr int64_t kPanel = int64_t{1} << 22;  // elements
  return std::clamp<int64_t>(kPanel / op.in(), 1, op.out());
}

void GemmRunner::project_int8(const Project& op, ConstView x) {
  const int64_t columns = op.in(), step = panel_rows(op);
  const auto wide = std::make_unique_for_overwrite<uint16_t[]>(static_cast<size_t>(step * columns));
  const auto sums = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(op.n() * step));
  for (int64_t begin = 0; begin < op.out(); begin += step) {
    const int64_t rows = std::min(step, op.out() - begin);
    const int8_t* const from = op.w.as<int8_t>() + begin * columns;
    for_each_range(rows * columns, int64_t{1} << 16, [&](int64_t first, int64_t last) {
      kernels_.int8_to_bf16(wide.get() + first, from + first, last - first);
    });
    run(Gemm{.c = View{sums.get(), DType::kF32, {op.n(), rows}},
             .a = x,
             .b = ConstView{wide.get(), DType::kBf16, {rows, columns}},
             .trans_b = true});
    const float* const scales = op.scales.as<float>() + begin;
    const float* const bias = op.bias ? op.bias.as<float>() + begin : nullptr;
    for_each_block(op.n(), [&](int64_t row) {
      const float* const sum = sums.get() + row * rows;
      float* const y = op.y.as<float>() + row * op.out() + begin;
      for (int64_t i = 0; i < rows; ++i) y[i] = sum[i] * scales[i] + (bias == nullptr ? 0.0f : bias[i]);
    });
  }
}

void GemmRunner::project_panels(const Project& op) {
  const int64_t columns = op.in(), step = panel_rows(op);
  const bool whole = step == op.out();
  const auto wide = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(step * columns));
  const auto part = std::make_unique_for_overwrite<float[]>(whole ? 0 : static_cast<size_t>(op.n() * step));
  for (int64_t begin = 0; begin < op.out(); begin += step) {
    const int64_t rows = std::min(step, op.out() - begin);
    widen(op, begin, rows, wide.get());
    const View y = whole ? op.y.as_shape({op.n(), rows}) : View{part.get(), DType::kF32, {op.n(), rows}};
    run(Gemm{.c = y,
             .a = op.x,
             .b = ConstView{wide.get(), DType::kF32, {rows, columns}},
             .bias = op.bias ? op.bias.rows(begin, begin + rows) : ConstView{},
             .trans_b = true});
    for (int64_t row = 0; row < op.n() && !whole; ++row)
      std::memcpy(op.y.as<float>() + row * op.out() + begin, part.get() + row * rows,
                  static_cast<size_t>(rows) * sizeof(float));
  }
}

void GemmRunner::widen(const Project& op, int64_t begin, int64_t count, float* to) const {
  constexpr int64_t kRows = 16;
  const int64_t columns = op.in();
  team_.for_each_block((count + kRows - 1) / kRows, [&](int64_t block) {
    const int64_t first = block * kRows, rows = std::min(kRows, count - first);
    float* const out = to + first * columns;
    const ConstView w = op.w.rows(begin + first, begin + first + rows);
    if (w.dtype != DType::kI8) return kernels_.copy[kF32][storage_of(w.dtype)](out, w.data, w.elements());
    // The kernel only reads what loses its const here.
    kernels_.widen_rows(out,
                        {.q = const_cast<int8_t*>(w.as<int8_t>()),
                         .scales = const_cast<float*>(op.scales.as<float>()) + begin + first,
                         .w = nullptr,
                         .columns = columns},
                        0, rows);
  });
}

/// Runs a product with k = 0: c becomes zero or the bias or, with accumulate, stays unchanged.
void GemmRunner::add_nothing(const Gemm& op) const {
  if (op.accumulate) return;
  std::memset(op.c.data, 0, op.c.bytes());
  if (!op.bias) return;
  const auto add = kernels_.add[storage_of(op.c.dtype)][storage_of(op.bias.dtype)];
  const View rows = op.c.as_shape({op.m(), op.n()});
  for (int64_t row = 0; row < op.m(); ++row) add(rows.rows(row, row + 1).data, op.bias.data, op.n());
}

Products& GemmRunner::products() {
  std::call_once(once_, [&] { products_ = make_products(); });
  return *products_;
}

void GemmRunner::run(const Gemm& op) {
  if (op.c.elements() == 0) return;
  if (op.k() == 0) return add_nothing(op);
  if (op.m() <= Project::kFewRows && op.trans_b && !op.trans_a) return multiply_rows(op);
  Products& products = this->products();
  if (op.a.dtype == DType::kF32 || (op.a.dtype == DType::kBf16 && products.has_bf16()))
    return products.run(op);
  WideProduct(products, kernels_).run(op);
}

void GemmRunner::run(const Project& op) {
  if (op.n() > Project::kFewRows) return project_many(op);
  const Storage storage = op.w.dtype == DType::kI8 ? kI8 : storage_of(op.w.dtype);
  project({.y = op.y.as<float>(),
           .x = op.x.as<float>(),
           .w = op.w.data,
           .scales = op.scales.as<float>(),
           .bias = op.bias.as<float>(),
           .rows = op.n(),
           .columns = op.in(),
           .x_stride = op.in(),
           .y_stride = op.out()},
          storage, op.out());
}

}  // namespace megalith::cpu
