#include "libcore/ops/cuda/products/fastest_product.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "libcore/ops/backend/cuda_workspaces.h"
#include "libcore/ops/cuda/cuda_backend.h"
#include "libcore/ops/cuda/element_maths.h"
#include "libcore/ops/cuda/gemm.h"
#include "libcore/ops/cuda/queue.h"

namespace megalith::cuda {
namespace {

constexpr int64_t kPattern = 65521;  // elements; a prime, so that rows differ

/// Elements from -1 to 1, since products of equal ones take less power, and so less time, than a model's.
std::vector<std::byte> pattern_of(DType dtype) {
  const size_t size = size_of(dtype);
  std::vector<std::byte> elements(static_cast<size_t>(kPattern) * size);
  uint32_t state = 1;
  for (size_t at = 0; at < elements.size(); at += size) {
    state = state * 1664525U + 1013904223U;
    const float number = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31F;
    const uint32_t bits = dtype == DType::kF32    ? std::bit_cast<uint32_t>(number)
                          : dtype == DType::kBf16 ? narrow<Bf16>(number).bits
                                                  : narrow<Half>(number).bits;
    std::memcpy(&elements[at], &bits, size);
  }
  return elements;
}

/// A product on a stream, and the memory of its matrices.
class TimedProduct {
 public:
  TimedProduct(Backend& backend, Queue& queue, const ProductKind& kind)
      : backend_(backend),
        kind_(kind),
        a_(backend.allocate(bytes(kind.m * kind.k, kind.in))),
        b_(backend.allocate(bytes(kind.k * kind.n, kind.in))),
        c_(backend.allocate(bytes(kind.m * kind.n, kind.out))),
        bias_(backend.allocate(bytes(kind.bias ? kind.n : 0, kind.out))),
        sum_(backend.allocate(sizeof(double))),
        queue_(queue),
        stream_(backend, &queue) {
    fill_inputs();
  }
  ~TimedProduct() { queue_.finish(); }  // the work that uses the memory
  TimedProduct(const TimedProduct&) = delete;
  TimedProduct& operator=(const TimedProduct&) = delete;

  /// The sum of squares of the result; NaN if the algorithm fails or leaves a part of the result unwritten.
  double sum_by(const ProductAlgorithm& algorithm) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    // What is added to cannot be NaN: it is 0, and then a part that is left out makes the sum smaller.
    backend_.fill(stream_, gemm().c, kind_.accumulate ? 0 : kNan);
    if (!run(algorithm)) return kNan;
    double sum = 0;
    const View out{sum_.data.get(), DType::kF64, {1}};
    backend_.fill(stream_, out, 0);
    backend_.run(stream_, SumSquares{.out = out, .x = gemm().c});
    backend_.to_host(stream_, &sum, out);
    return sum;
  }

  /// The least time of three runs; infinite if one fails, since what was not run takes no time. They follow
  /// another one, so that the device does not wait for the host.
  double seconds_of(const ProductAlgorithm& algorithm) {
    constexpr int kRuns = 3;
    std::vector<WorkTime> runs;
    bool all_ran = run(algorithm);
    for (int i = 0; i < kRuns; ++i)
      runs.push_back(backend_.timed(stream_, [&] { all_ran = run(algorithm) && all_ran; }));
    double least = std::numeric_limits<double>::infinity();
    for (const WorkTime& time : runs) least = std::min(least, time.ask());
    return all_ran ? least : std::numeric_limits<double>::infinity();
  }

 private:
  static size_t bytes(int64_t elements, DType dtype) {
    return static_cast<size_t>(elements) * size_of(dtype);
  }
  Gemm gemm() const {
    const ProductKind& p = kind_;
    const auto view = [](const Memory& memory, DType dtype, bool transposed, int64_t rows, int64_t columns) {
      return View{memory.data.get(), dtype, transposed ? Shape{columns, rows} : Shape{rows, columns}};
    };
    return {.c = view(c_, p.out, false, p.m, p.n),
            .a = view(a_, p.in, p.trans_a, p.m, p.k),
            .b = view(b_, p.in, p.trans_b, p.k, p.n),
            .bias = p.bias ? View{bias_.data.get(), p.out, {p.n}} : View{},
            .trans_a = p.trans_a,
            .trans_b = p.trans_b,
            .accumulate = p.accumulate};
  }
  bool run(const ProductAlgorithm& algorithm) {
    return products_of(backend_).run_by(queue_, gemm(), algorithm);
  }

  void fill_inputs() {
    const Gemm op = gemm();
    repeat({a_.data.get(), kind_.in, {op.a.elements()}});
    repeat({b_.data.get(), kind_.in, {op.b.elements()}});
    if (kind_.bias) repeat({bias_.data.get(), kind_.out, {kind_.n}});
    backend_.synchronize(stream_);
  }
  static View part(const View& view, int64_t first, int64_t count) {
    return {static_cast<std::byte*>(view.data) + bytes(first, view.dtype), view.dtype, {count}};
  }
  /// Fills `to` with the pattern, again and again: each copy doubles what is filled.
  void repeat(const View& to) {
    const std::vector<std::byte> pattern = pattern_of(to.dtype);
    const int64_t all = to.elements();
    int64_t done = std::min(all, kPattern);
    backend_.from_host(stream_, part(to, 0, done), pattern.data());
    while (done < all) {
      const int64_t more = std::min(done, all - done);
      backend_.copy(stream_, part(to, done, more), part(to, 0, more));
      done += more;
    }
  }

  Backend& backend_;
  ProductKind kind_;
  Memory a_, b_, c_, bias_, sum_;
  Queue& queue_;
  Stream stream_;
};

/// Whether two sums of squares are of the same product. Sums in another order differ in the last bits. A tile
/// that is left out of a sum in fp32, which was 0 before, shows; one that is left out otherwise is NaN.
bool agree(double sum, double reference, DType out) {
  const double limit = out == DType::kF32 ? 1e-4 : 1e-2;
  return std::abs(sum - reference) <= limit * reference;
}

std::optional<ProductAlgorithm> fastest_of(TimedProduct& product, const std::vector<ProductAlgorithm>& among,
                                           DType out) {
  std::optional<ProductAlgorithm> fastest;
  double least = std::numeric_limits<double>::infinity(), reference = -1;
  for (const ProductAlgorithm& algorithm : among) {
    const double sum = product.sum_by(algorithm);
    if (!std::isfinite(sum)) continue;
    if (reference < 0) reference = sum;
    if (!agree(sum, reference, out)) continue;
    if (const double seconds = product.seconds_of(algorithm); seconds < least) {
      least = seconds;
      fastest = algorithm;
    }
  }
  return fastest;
}

}  // namespace

// The stream is the calls' own, so that its scratch memory is freed before a run takes its memory.
std::vector<std::optional<ProductAlgorithm>> fastest_products(Backend& backend,
                                                              const std::vector<ProductKind>& kinds) {
  constexpr int kMost = 8;
  Queue queue(waits_of(backend));
  std::vector<std::optional<ProductAlgorithm>> fastest(kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    const std::vector<ProductAlgorithm> among = products_of(backend).candidates(kinds[i], kMost);
    if (among.size() < 2) continue;  // no choice: the product is computed by this one as it is
    TimedProduct product(backend, queue, kinds[i]);
    fastest[i] = fastest_of(product, among, kinds[i].out);
  }
  return fastest;
}

}  // namespace megalith::cuda
