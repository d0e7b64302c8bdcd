#include "libcore/ops/cuda/cudnn/attention_trial.h"

#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "libcore/ops/cuda/backend/attention_ops.h"
#include "libcore/ops/cuda/backend/cuda_backend.h"
#include "libcore/ops/cuda/cudnn/close_rows.h"
#include "libcore/ops/cuda/element_maths.h"
#include "libcore/ops/cuda/op_fields.h"
#include "libcore/ops/cuda/queue.h"
#include "libcore/ops/random/noise.h"

namespace megalith::cuda {
namespace {

float number_of(DType dtype, uint16_t bits) {
  return dtype == DType::kBf16 ? widen(Bf16{bits}) : widen(Half{bits});
}

/// The results of one computation, in host memory.
struct Results {
  std::vector<float> out, lse, dqkv;
};

/// An attention with tensors of its own.
class Trial {
 public:
  Trial(Backend& backend, Queue& queue, const AttentionKind& kind)
      : kind_(kind),
        backend_(backend),
        queue_(queue),
        stream_(backend, &queue),
        memory_{make(qkv_shape(), kind.dtype), make(out_shape(), kind.dtype), make(out_shape(), kind.dtype),
                make(lse_shape(), DType::kF32), make(qkv_shape(), kind.dtype)} {
    fill(qkv(), 1);
    fill(dout(), 2);
  }
  ~Trial() { queue_.finish(); }  // the work that uses the memory
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  /// What is not written stays NaN. `other` null: by our kernels.
  Results run(OtherAttention* other) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    for (const View& view : {out(), lse(), dqkv()}) backend_.fill(stream_, view, kNan);
    const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(kind_.head)));
    const Attention forward{.out = out(), .qkv = qkv(), .scale = scale, .lse = lse()};
    if (other == nullptr || !other->run(queue_, forward)) run_on(queue_, forward);
    const AttentionGrad backward{
        .dqkv = dqkv(), .dout = dout(), .out = out(), .qkv = qkv(), .lse = lse(), .scale = scale};
    if (other == nullptr || !other->run(queue_, backward)) run_on(queue_, backward);
    return {read(out()), read(lse()), read(dqkv())};
  }

 private:
  Shape qkv_shape() const { return {kind_.rows, kind_.batch, kind_.groups, kind_.r + 2, kind_.head}; }
  Shape out_shape() const { return {kind_.rows, kind_.batch, kind_.groups * kind_.r, kind_.head}; }
  Shape lse_shape() const { return {kind_.batch, kind_.groups * kind_.r, kind_.rows}; }
  Memory make(const Shape& shape, DType dtype) {
    return backend_.allocate(static_cast<size_t>(shape.elements()) * size_of(dtype));
  }
  View qkv() const { return {memory_[0].data.get(), kind_.dtype, qkv_shape()}; }
  View out() const { return {memory_[1].data.get(), kind_.dtype, out_shape()}; }
  View dout() const { return {memory_[2].data.get(), kind_.dtype, out_shape()}; }
  View lse() const { return {memory_[3].data.get(), DType::kF32, lse_shape()}; }
  View dqkv() const { return {memory_[4].data.get(), kind_.dtype, qkv_shape()}; }

  void fill(const View& view, uint32_t seed) {
    Noise noise(seed);
    std::vector<uint16_t> bits(static_cast<size_t>(view.elements()));
    for (uint16_t& one : bits) one = static_cast<uint16_t>(element_bits(kind_.dtype, noise.next()));
    backend_.from_host(stream_, view, bits.data());
    backend_.synchronize(stream_);
  }
  std::vector<float> read(const View& view) {
    std::vector<float> numbers(static_cast<size_t>(view.elements()));
    if (view.dtype == DType::kF32) {
      backend_.to_host(stream_, numbers.data(), view);
      return numbers;
    }
    std::vector<uint16_t> bits(numbers.size());
    backend_.to_host(stream_, bits.data(), view);
    for (size_t i = 0; i < bits.size(); ++i) numbers[i] = number_of(kind_.dtype, bits[i]);
    return numbers;
  }

  const AttentionKind kind_;
  Backend& backend_;
  Queue& queue_;
  Stream stream_;
  Memory memory_[5];
};

}  // namespace

std::string difference_of(Backend& backend, OtherAttention& other, const AttentionKind& kind) {
  Queue queue(waits_of(backend));
  Trial trial(backend, queue, kind);
  const Results wanted = trial.run(nullptr), got = trial.run(&other);
  const auto head = static_cast<size_t>(kind.head), r = static_cast<size_t>(kind.r);
  if (!rows_are_close(got.out, wanted.out, {head})) return "its result differs from that of our kernels";
  if (!rows_are_close(got.lse, wanted.lse, {1})) return "its sums of exponentials differ from ours";
  constexpr const char* kNames[] = {"queries", "keys", "values"};
  const ComparedRows parts[] = {{head, r + 2, 0, r}, {head, r + 2, r, r + 1}, {head, r + 2, r + 1, r + 2}};
  for (size_t i = 0; i < std::size(parts); ++i)
    if (!rows_are_close(got.dqkv, wanted.dqkv, parts[i]))
      return std::string("its gradient of ") + kNames[i] + " differs from that of our kernels";
  return {};
}

}  // namespace megalith::cuda
