#include "libcore/ops/cpu/gemm.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include <dnnl.hpp>

#include "libcore/ops/cpu/storage.h"
#include "libcore/ops/cpu/threads.h"

namespace megalith::cpu {
namespace {

using Dtype = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;

Dtype dnnl_type(DType dtype) {
  return dtype == DType::kBf16 ? Dtype::bf16 : Dtype::f32;
}

/// What a primitive depends on.
struct Signature {
  int64_t m, n, k;
  DType in, out;
  std::optional<DType> bias;
  bool trans_a, trans_b, accumulate;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 reads it into the generated comparison
  auto operator<=>(const Signature&) const = default;
};

Signature signature_of(const Gemm& op) {
  return {op.m(),     op.n(),     op.k(),
          op.a.dtype, op.c.dtype, op.bias ? std::optional(op.bias.dtype) : std::nullopt,
          op.trans_a, op.trans_b, op.accumulate};
}

/// Whether to bring b into oneDNN's own order first. Measured for GPT-2 124M, one thread, packing included:
/// forward +0..5 %, dgrad +7..20 %, bf16 wgrad +10..30 %, fp32 wgrad -8 %. A vocabulary's head has too few
/// rows for its b.
bool worth_packing(const Signature& s, size_t b_bytes) {
  const bool fp32_wgrad = s.trans_a && s.in == DType::kF32;
  return s.m >= 256 && b_bytes <= size_t{32} << 20 && !fp32_wgrad;
}

struct Primitive {
  dnnl::matmul matmul;
  dnnl::memory::desc a, b, c, bias, scratchpad, packed_b;
  std::optional<dnnl::reorder> pack;  // b -> packed_b
};

dnnl::reorder make_pack(const dnnl::engine& engine, const dnnl::memory::desc& from,
                        const dnnl::memory::desc& to) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc description(engine, from, engine, to, attributes);
  if (description.scratchpad_desc().get_size() != 0)
    fail(ErrorKind::kInternal, "oneDNN: a reorder wants a scratchpad");
  return dnnl::reorder(description);
}

Primitive make_primitive(const dnnl::engine& engine, const Signature& s) {
  Primitive p;
  p.a = {{s.m, s.k}, dnnl_type(s.in), s.trans_a ? Tag::ba : Tag::ab};
  p.b = {{s.k, s.n}, dnnl_type(s.in), s.trans_b ? Tag::ba : Tag::ab};
  p.c = {{s.m, s.n}, dnnl_type(s.out), Tag::ab};
  if (s.bias) p.bias = {{1, s.n}, dnnl_type(*s.bias), Tag::ab};
  dnnl::primitive_attr attributes;
  // The library's own scratchpad belongs to the thread that made the primitive; ranks may be threads that
  // share it.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const bool pack = worth_packing(s, p.b.get_size());
  const dnnl::memory::desc b = pack ? dnnl::memory::desc({s.k, s.n}, dnnl_type(s.in), Tag::any) : p.b;
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc description =
      s.bias ? dnnl::matmul::primitive_desc(engine, p.a, b, p.bias, p.c, attributes)
             : dnnl::matmul::primitive_desc(engine, p.a, b, p.c, attributes);
#else
  const dnnl::matmul::desc shape =
      s.bias ? dnnl::matmul::desc(p.a, b, p.bias, p.c) : dnnl::matmul::desc(p.a, b, p.c);
  const dnnl::matmul::primitive_desc description(shape, attributes, engine);
#endif
  p.scratchpad = description.scratchpad_desc();
  p.matmul = dnnl::matmul(description);
  p.packed_b = description.weights_desc();
  if (p.packed_b != p.b) p.pack = make_pack(engine, p.b, p.packed_b);
  return p;
}

/// In floats, a multiple of 64 bytes.
size_t round_to_floats(size_t bytes) {
  return (bytes + 63) / 64 * 16;
}

/// fp32 copies of the operands of a bf16 product on a processor for which oneDNN has none.
Gemm in_fp32(const Gemm& op, const Kernels& kernels, float* block) {
  Gemm wide = op;
  const auto take = [&](const auto& view) {
    float* const copy = block;
    block += view.elements();
    return copy;
  };
  const auto widen = [&](ConstView& view) {
    if (!view || view.dtype == DType::kF32) return;
    float* const copy = take(view);
    kernels.copy[kF32][kBf16](copy, view.data, view.elements());
    view = {copy, DType::kF32, view.shape};
  };
  widen(wide.a);
  widen(wide.b);
  widen(wide.bias);
  if (op.c.dtype == DType::kF32) return wide;
  wide.c = {take(op.c), DType::kF32, op.c.shape};
  if (op.accumulate) kernels.copy[kF32][kBf16](wide.c.data, op.c.data, op.c.elements());
  return wide;
}

}  // namespace

struct GemmRunner::Cache {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  bool has_bf16 = true;
  std::mutex
      mutex;  // guards the map. Shared ownership: another thread may empty it while this one multiplies
  std::map<Signature, std::shared_ptr<const Primitive>> primitives;

  Cache() {
    try {
      make_primitive(engine, {.m = 32,
                              .n = 32,
                              .k = 32,
                              .in = DType::kBf16,
                              .out = DType::kBf16,
                              .bias = {},
                              .trans_a = false,
                              .trans_b = false,
                              .accumulate = false});
    } catch (const dnnl::error&) {
      has_bf16 = false;
    }
  }

  std::shared_ptr<const Primitive> find(const Signature& signature) {
    constexpr size_t kMost =
        512;  // prompts of every length would fill memory; oneDNN itself keeps the compiled kernels
    const std::lock_guard lock(mutex);
    if (const auto found = primitives.find(signature); found != primitives.end()) return found->second;
    if (primitives.size() == kMost) primitives.clear();
    auto made = std::make_shared<const Primitive>(make_primitive(engine, signature));
    primitives.emplace(signature, made);
    return made;
  }

  void run(const Gemm& op) {
    try {
      const std::shared_ptr<const Primitive> primitive = find(signature_of(op));
      const Primitive& p = *primitive;
      const auto memory = [&](const dnnl::memory::desc& desc, const void* data) {
        return dnnl::memory(desc, engine, const_cast<void*>(data));  // NOLINT: oneDNN has no read-only memory
      };
      // One block: the scratchpad, then b in oneDNN's order.
      const size_t scratchpad = round_to_floats(p.scratchpad.get_size());
      const size_t packed = p.pack ? round_to_floats(p.packed_b.get_size()) : 0;
      float* const block = thread_scratch(scratchpad + packed);
      dnnl::stream stream(engine);
      dnnl::memory b = memory(p.b, op.b.data);
      if (p.pack) {
        dnnl::memory packed_b = memory(p.packed_b, block + scratchpad);
        p.pack->execute(stream, b, packed_b);
        b = packed_b;
      }
      std::unordered_map<int, dnnl::memory> arguments = {{DNNL_ARG_SRC, memory(p.a, op.a.data)},
                                                         {DNNL_ARG_WEIGHTS, b},
                                                         {DNNL_ARG_DST, memory(p.c, op.c.data)},
                                                         {DNNL_ARG_SCRATCHPAD, memory(p.scratchpad, block)}};
      if (op.bias) arguments.emplace(DNNL_ARG_BIAS, memory(p.bias, op.bias.data));
      p.matmul.execute(stream, arguments);
      stream.wait();
    } catch (const dnnl::error& error) {
      fail(ErrorKind::kDevice, "oneDNN: no matrix product of ", op.a.shape, " and ", op.b.shape, " into ",
           op.c.shape, ": ", error.what());
    }
  }
};

void GemmRunner::project(const ProjectArgs& args, Storage storage, int64_t out) const {
  constexpr int64_t kBytes = 1 << 16;  // of weights in a block: some microseconds
  const int64_t width = storage == kF32 ? 4 : storage == kI8 ? 1 : 2;
  const int64_t rows = std::max<int64_t>(4, kBytes / (args.columns * width) / 4 * 4);
  const auto kernel = kernels_.project[storage];
  team_.for_each_block((out + rows - 1) / rows,
                       [&](int64_t block) { kernel(args, block * rows, std::min(out, (block + 1) * rows)); });
}

/// A few rows with the rows of b, in fp32.
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

/// Panels of weights are widened and multiplied by oneDNN.
void GemmRunner::project_panels(const Project& op) {
  constexpr int64_t kPanel = int64_t{1} << 22;  // elements
  const int64_t columns = op.in(), step = std::clamp<int64_t>(kPanel / columns, 1, op.out());
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
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): read only
    kernels_.widen_rows(out,
                        {.q = const_cast<int8_t*>(w.as<int8_t>()),
                         .scales = const_cast<float*>(op.scales.as<float>()) + begin + first,
                         .w = nullptr,
                         .columns = columns},
                        0, rows);
  });
}

/// A sum over no terms: zeros or the bias.
void GemmRunner::add_nothing(const Gemm& op) const {
  if (op.accumulate) return;
  std::memset(op.c.data, 0, op.c.bytes());
  if (!op.bias) return;
  const auto add = kernels_.add[storage_of(op.c.dtype)][storage_of(op.bias.dtype)];
  const View rows = op.c.as_shape({op.m(), op.n()});
  for (int64_t row = 0; row < op.m(); ++row) add(rows.rows(row, row + 1).data, op.bias.data, op.n());
}

GemmRunner::GemmRunner(const Kernels& kernels, Team& team)
    : kernels_(kernels), team_(team), cache_(std::make_unique<Cache>()) {}
GemmRunner::~GemmRunner() = default;

void GemmRunner::run(const Gemm& op) {
  if (op.c.elements() == 0) return;
  if (op.k() == 0) return add_nothing(op);
  if (op.m() <= Project::kFewRows && op.trans_b && !op.trans_a) return multiply_rows(op);
  if (op.a.dtype == DType::kF32 || cache_->has_bf16) return cache_->run(op);
  std::vector<float> block(
      static_cast<size_t>(op.a.elements() + op.b.elements() + op.bias.elements() + op.c.elements()));
  const Gemm wide = in_fp32(op, kernels_, block.data());
  cache_->run(wide);
  if (op.c.dtype == DType::kBf16) kernels_.copy[kBf16][kF32](op.c.data, wide.c.data, op.c.elements());
}

void GemmRunner::run(const Project& op) {
  if (op.n() > Project::kFewRows && op.w.dtype != DType::kF32) return project_panels(op);
  if (op.n() > Project::kFewRows)
    return run(Gemm{.c = op.y, .a = op.x, .b = op.w, .bias = op.bias, .trans_b = true});
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
