#include "libcore/ops/cuda/products/fastest_product.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "libcore/ops/backend/cuda_workspaces.h"
#include "libcore/ops/backend/product_parts.h"
#include "libcore/ops/cuda/backend/cuda_backend.h"
#include "libcore/ops/cuda/gemm.h"
#include "libcore/ops/cuda/op_fields.h"
#include "libcore/ops/cuda/queue.h"
#include "libcore/ops/random/noise.h"

namespace megalith::cuda {
namespace {

constexpr int64_t kPattern = 65521;  // elements; a prime, so that rows differ

/// Elements from -1 to 1, since products of equal ones take less power, and so less time, than a model's.
std::vector<std::byte> pattern_of(DType dtype) {
  const size_t size = size_of(dtype);
  std::vector<std::byte> elements(static_cast<size_t>(kPattern) * size);
  Noise noise(1);
  for (size_t at = 0; at < elements.size(); at += size) {
    const uint64_t bits = element_bits(dtype, noise.next());
    std::memcpy(&elements[at], &bits, size);
  }
  return elements;
}

/// A part of what a product writes, and the same part as the first right algorithm wrote it.
class Result {
 public:
  Result(Backend& backend, const View& view, bool accumulate)
      : backend_(backend),
        view_(view),
        accumulate_(accumulate),
        first_(backend.allocate(view.bytes())),
        sum_(backend.allocate(sizeof(double))) {}

  /// Fills it with NaN. What is added to is 0 instead: a part that is left out then differs from the first.
  void poison(Stream& stream) const {
    backend_.fill(stream, view_, accumulate_ ? 0 : std::numeric_limits<double>::quiet_NaN());
  }

  /// Whether each element was written and is the first one's, up to the order of its sum. The first result
  /// that was wholly written is kept as the one that others are compared with. Overwrites the result.
  bool is_right(Stream& stream) {
    // Bounds of the root of the mean square of the differences, relative to that of the elements. Sums of
    // products in fp32 differ by about 1e-6 in another order. A few elements of 16 bits are then rounded to a
    // neighbour, 2^-7 away in bf16, which counts for less than 3e-4. Two tiles of a million that are swapped
    // differ by more than the bound.
    const double limit = view_.dtype == DType::kF32 ? 1e-4 : 1e-3;
    const View first{first_.data.get(), view_.dtype, view_.shape};
    if (squares_ > 0) {
      backend_.add(stream, view_, first);
      return sum_of_squares(stream) <= limit * limit * squares_;  // false for NaN
    }
    const double squares = sum_of_squares(stream);
    if (!std::isfinite(squares)) return false;
    squares_ = squares;
    backend_.copy(stream, first, view_);
    backend_.run(stream, ScaleBy{.x = first, .factor = -1});
    return true;
  }

 private:
  double sum_of_squares(Stream& stream) const {
    double sum = 0;
    const View out{sum_.data.get(), DType::kF64, {1}};
    backend_.fill(stream, out, 0);
    backend_.run(stream, SumSquares{.out = out, .x = view_});
    backend_.to_host(stream, &sum, out);
    return sum;
  }

  Backend& backend_;
  View view_;
  bool accumulate_;
  Memory first_, sum_;  // first_: the first right result, negated
  double squares_ = 0;  // its sum of squares; 0: there is none yet
};

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
        beside_(backend.allocate(beside_bytes(kind))),
        queue_(queue),
        stream_(backend, &queue) {
    const Gemm op = gemm();
    results_.emplace_back(backend, op.c, kind.accumulate);
    if (op.before_gelu) results_.emplace_back(backend, op.before_gelu, false);
    if (op.bias_grad) results_.emplace_back(backend, op.bias_grad, false);
    fill_inputs();
  }
  ~TimedProduct() { queue_.finish(); }  // the work that uses the memory
  TimedProduct(const TimedProduct&) = delete;
  TimedProduct& operator=(const TimedProduct&) = delete;

  /// Whether the algorithm runs and its result is that of the first one that did, which is right.
  bool is_right(const ProductAlgorithm& algorithm) {
    for (const Result& result : results_) result.poison(stream_);
    return run(algorithm) && std::all_of(results_.begin(), results_.end(),
                                         [&](Result& result) { return result.is_right(stream_); });
  }

  /// The time of the product by this algorithm; for kByParts, of the product without its epilogue, by the
  /// algorithm that cuBLASLt suggests first, and of ops of ours after it. The least of three runs; infinite
  /// if one fails, since what was not run takes no time. They follow another run, so that the device does not
  /// wait for the host.
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
  static size_t beside_bytes(const ProductKind& kind) {
    switch (kind.epilogue) {
      case Epilogue::kGelu:
      case Epilogue::kGeluGrad:
        return bytes(kind.m * kind.n, kind.out);
      case Epilogue::kBiasGrad:
        return bytes(kind.m, DType::kF32);
      case Epilogue::kNone:
        break;
    }
    return 0;
  }
  Gemm gemm() const {
    const ProductKind& p = kind_;
    const auto view = [](const Memory& memory, DType dtype, bool transposed, int64_t rows, int64_t columns) {
      return View{memory.data.get(), dtype, transposed ? Shape{columns, rows} : Shape{rows, columns}};
    };
    const View matrix = view(beside_, p.out, false, p.m, p.n);
    return {.c = view(c_, p.out, false, p.m, p.n),
            .a = view(a_, p.in, p.trans_a, p.m, p.k),
            .b = view(b_, p.in, p.trans_b, p.k, p.n),
            .bias = p.bias ? View{bias_.data.get(), p.out, {p.n}} : View{},
            .trans_a = p.trans_a,
            .trans_b = p.trans_b,
            .accumulate = p.accumulate,
            .before_gelu = p.epilogue == Epilogue::kGelu ? matrix : View{},
            .gelu_grad_at = p.epilogue == Epilogue::kGeluGrad ? matrix : View{},
            .bias_grad =
                p.epilogue == Epilogue::kBiasGrad ? View{beside_.data.get(), DType::kF32, {p.m}} : View{}};
  }
  bool run(const ProductAlgorithm& algorithm) {
    if (algorithm != kByParts) return products_of(backend_).run_by(queue_, gemm(), algorithm);
    for_each_part(gemm(), [&](const auto& part) { backend_.run(stream_, part); });
    return true;
  }

  void fill_inputs() {
    const Gemm op = gemm();
    repeat({a_.data.get(), kind_.in, {op.a.elements()}});
    repeat({b_.data.get(), kind_.in, {op.b.elements()}});
    if (kind_.bias) repeat({bias_.data.get(), kind_.out, {kind_.n}});
    if (op.gelu_grad_at) repeat({beside_.data.get(), kind_.out, {op.gelu_grad_at.elements()}});
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
  Memory a_, b_, c_, bias_, beside_;  // beside_: of the epilogue
  std::vector<Result> results_;
  Queue& queue_;
  Stream stream_;
};

/// The fastest of those algorithms that are right; kByParts if the product without its epilogue, and ops of
/// ours after it, take less time; nothing if no algorithm is right.
std::optional<ProductAlgorithm> fastest_of(TimedProduct& product, const ProductKind& kind,
                                           const std::vector<ProductAlgorithm>& among) {
  std::optional<ProductAlgorithm> fastest;
  double least = std::numeric_limits<double>::infinity();
  for (const ProductAlgorithm& algorithm : among) {
    if (!product.is_right(algorithm)) continue;
    if (const double seconds = product.seconds_of(algorithm); seconds < least) {
      least = seconds;
      fastest = algorithm;
    }
  }
  if (fastest && kind.epilogue != Epilogue::kNone && product.seconds_of(kByParts) < least) return kByParts;
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
    fastest[i] = fastest_of(product, kinds[i], among);
  }
  return fastest;
}

}  // namespace megalith::cuda
