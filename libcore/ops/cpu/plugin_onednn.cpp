// libmegalith_onednn.so: see products.h.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <dnnl.hpp>

#include "libcore/base/error.h"
#include "libcore/base/refusals.h"
#include "libcore/ops/cpu/products.h"
#include "libcore/ops/cpu/threads.h"

namespace megalith::cpu {
namespace {

using Dtype = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;

Dtype dnnl_type(DType dtype) {
  return dtype == DType::kBf16 ? Dtype::bf16 : Dtype::f32;
}

/// The properties of a product that determine its primitive.
struct Signature {
  int64_t m, n, k;
  DType in, out;
  std::optional<DType> bias;
  bool trans_a, trans_b, accumulate;
  auto operator<=>(const Signature&) const = default;
};

Signature signature_of(const Gemm& op) {
  return {op.m(),     op.n(),     op.k(),
          op.a.dtype, op.c.dtype, op.bias ? std::optional(op.bias.dtype) : std::nullopt,
          op.trans_a, op.trans_b, op.accumulate};
}

/// Whether to bring b into oneDNN's own order first. Measured for GPT-2 124M, one thread, packing included:
/// forward +0..5 %, dgrad +7..20 %, bf16 wgrad +10..30 %, fp32 wgrad -8 %. The LM head, whose b exceeds 32
/// MiB, is left out: packing b for each chunk of 1024 rows makes the head 7 % slower. Packing b once for all
/// four chunks takes 154 MB and makes the head only 3 % faster, a step 1 %. Forward products of fewer than
/// 1024 rows, as those of prompts, lose by it: 256 rows on one core of a Zen 4, GFLOP/s packed and not, bf16
/// 140 to 176 and 202 to 220, fp32 90 to 92 and 101 to 107; 512 rows 173 to 198 and 201 to 216.
bool worth_packing(const Signature& s, size_t b_bytes) {
  const bool fp32_wgrad = s.trans_a && s.in == DType::kF32;
  const bool forward = s.trans_b && !s.trans_a;
  return s.m >= (forward ? 1024 : 256) && b_bytes <= size_t{32} << 20 && !fp32_wgrad;
}

struct Primitive {
  dnnl::matmul matmul;
  dnnl::memory::desc a, b, c, bias, scratchpad, packed_b;
  std::optional<dnnl::reorder> pack;  // reorders b into packed_b; empty: b is not packed
};

void check_memory(const dnnl::error& error) {
  if (error.status == dnnl_out_of_memory) throw out_of_memory();
}

dnnl::reorder make_pack(const dnnl::engine& engine, const dnnl::memory::desc& from,
                        const dnnl::memory::desc& to) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc description(engine, from, engine, to, attributes);
  if (description.scratchpad_desc().get_size() != 0)
    fail(ErrorKind::kInternal, "oneDNN: a reorder needs a scratchpad");
  return dnnl::reorder(description);
}

Primitive new_primitive(const dnnl::engine& engine, const Signature& s) {
  // oneDNN generates code without checking that it got memory for the code.
  const UncheckedMemory unchecked;
  Primitive p;
  p.a = {{s.m, s.k}, dnnl_type(s.in), s.trans_a ? Tag::ba : Tag::ab};
  p.b = {{s.k, s.n}, dnnl_type(s.in), s.trans_b ? Tag::ba : Tag::ab};
  p.c = {{s.m, s.n}, dnnl_type(s.out), Tag::ab};
  if (s.bias) p.bias = {{1, s.n}, dnnl_type(*s.bias), Tag::ab};
  dnnl::primitive_attr attributes;
  // The scratchpad is passed with each call. A scratchpad of oneDNN would belong to the thread that created
  // the primitive, but ranks that are threads of one process share primitives.
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

/// As new_primitive(), for one thread at a time, and not after a failure for lack of memory. oneDNN has one
/// cache for all threads of the process. Such a failure leaves an entry in it that is not whole: another
/// thread that waits for the entry gets std::future_error, one that compares it reads freed memory.
Primitive make_primitive(const dnnl::engine& engine, const Signature& s) {
  static std::mutex alone;
  static bool broken = false;
  const std::scoped_lock lock(alone);
  if (broken) throw out_of_memory();
  try {
    return new_primitive(engine, s);
  } catch (const dnnl::error& error) {
    broken = error.status == dnnl_out_of_memory;
    throw;
  } catch (...) {
    broken = true;
    throw;
  }
}

/// Rounds up to a multiple of 64 bytes; returns the number of floats.
size_t round_to_floats(size_t bytes) {
  return (bytes + 63) / 64 * 16;
}

/// Multiplies with oneDNN and caches the primitives by Signature.
class OneDnnProducts final : public Products {
 public:
  OneDnnProducts() {
    try {
      make_primitive(engine_, {.m = 32,
                               .n = 32,
                               .k = 32,
                               .in = DType::kBf16,
                               .out = DType::kBf16,
                               .bias = {},
                               .trans_a = false,
                               .trans_b = false,
                               .accumulate = false});
    } catch (const dnnl::error& error) {
      check_memory(error);
      has_bf16_ = false;
    }
  }

  bool has_bf16() const override { return has_bf16_; }
  void run(const Gemm& op) override;

 private:
  std::shared_ptr<const Primitive> find(const Signature& signature);

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  bool has_bf16_ = true;
  /// Guards primitives_, which another thread may clear while this one multiplies.
  std::mutex mutex_;
  std::map<Signature, std::shared_ptr<const Primitive>> primitives_;
};

std::shared_ptr<const Primitive> OneDnnProducts::find(const Signature& signature) {
  // Limits the memory of the cache, since each length of a prompt needs its own primitives. oneDNN itself
  // keeps the compiled kernels.
  constexpr size_t kMax = 512;
  const std::lock_guard lock(mutex_);
  if (const auto found = primitives_.find(signature); found != primitives_.end()) return found->second;
  if (primitives_.size() == kMax) primitives_.clear();
  auto made = std::make_shared<const Primitive>(make_primitive(engine_, signature));
  primitives_.emplace(signature, made);
  return made;
}

void OneDnnProducts::run(const Gemm& op) {
  try {
    const std::shared_ptr<const Primitive> primitive = find(signature_of(op));
    const Primitive& p = *primitive;
    const auto memory = [&](const dnnl::memory::desc& desc, const void* data) {
      return dnnl::memory(desc, engine_, const_cast<void*>(data));  // oneDNN has no read-only memory
    };
    // One block of memory holds the scratchpad, then b in oneDNN's order.
    const size_t scratchpad = round_to_floats(p.scratchpad.get_size());
    const size_t packed = p.pack ? round_to_floats(p.packed_b.get_size()) : 0;
    float* const block = thread_scratch(scratchpad + packed);
    dnnl::stream stream(engine_);
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
    check_memory(error);
    fail(ErrorKind::kDevice, "oneDNN: no matrix product of ", op.a.shape, " and ", op.b.shape, " into ",
         op.c.shape, ": ", error.what());
  }
}

}  // namespace
}  // namespace megalith::cpu

extern "C" {

/// The caller owns the result. Throws kDevice, kSystem.
__attribute__((visibility("default"))) megalith::cpu::Products* megalith_onednn_products() {
  return std::make_unique<megalith::cpu::OneDnnProducts>().release();
}
}
