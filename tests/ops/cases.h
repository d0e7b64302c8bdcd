#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libcore/ops/backend/backend.h"
#include "tests/ops/reference.h"

namespace megalith::test {

/// Puts tensors on a stream's device and reads them back. Owns their memory.
class Bed {
 public:
  /// Without `references`, finite differences are skipped: for tests that only look at results. With `odd`,
  /// tensors begin one element after an aligned address.
  explicit Bed(Stream& stream, bool references = true, bool odd = false)
      : stream_(stream), references_(references), odd_(odd) {}
  Stream& stream() { return stream_; }
  bool references() const { return references_; }

  /// A tensor with these values. Rounds `values` in place to the dtype's precision.
  View put(DType dtype, Shape shape, Values& values);
  View put(DType dtype, Shape shape, Values&& values) { return put(dtype, shape, values); }
  /// A tensor full of NaN (floats) or of -1, so that an op that does not write it is detected.
  View empty(DType dtype, Shape shape);
  Values get(const ConstView& view);

 private:
  Stream& stream_;
  bool references_, odd_;
  std::vector<Memory> blocks_;
};

/// One tensor of a case's result and its expected values.
struct Outcome {
  std::string what;
  Values got, want;
  double tolerance;  // bound of |got - want| relative to |want| + the root mean square of `want` + size
  double size = 0;  // size of terms that cancel in the result, or error of `want` itself divided by tolerance
  std::vector<size_t> places = {};  // of `got`, that `want` has the values of; empty: all
};

/// An op on given inputs, for any backend.
struct OpCase {
  std::string name;
  std::function<std::vector<Outcome>(Bed&)> run;
};

/// Cases of every op: with activations of these types; plain, odd and empty sizes; with and without optional
/// tensors. Backward ops are compared with finite differences of the fp64 forward reference.
using Types = std::vector<DType>;
std::vector<OpCase> op_cases(const Types& = {DType::kF32, DType::kBf16, DType::kF16});

/// Normal(0, 1) numbers that depend only on the seed.
Values random_values(int64_t n, uint32_t seed, double scale = 1);
/// Empty when everything agrees; otherwise describes the worst disagreement.
std::string disagreement(const Outcome& outcome);

}  // namespace megalith::test
