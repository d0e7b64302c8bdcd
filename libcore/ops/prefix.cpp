#include "libcore/ops/prefix.h"

#include "libcore/ops/checks.h"

namespace megalith {
namespace {

void check_prefix(const char* op, const ConstView& kv, const ConstView& prefix) {
  want_float(op, "kv", kv);
  require(kv.shape.rank == 5 && kv.shape[3] == 2, op, "kv [p, b, groups, 2, head]", kv.shape, kv.shape.rank);
  require(prefix.shape == Shape({2, kv.shape[2], kv.shape[0], kv.shape[4]}), op,
          "prefix [2, groups, p, head]", prefix.shape, kv.shape);
}

}  // namespace

void PutPrefix::check() const {
  check_prefix(kName, kv, prefix);
  want_dtype(kName, "prefix, of kv's dtype,", prefix, kv.dtype);
}
Cost PutPrefix::cost() const {
  return {0, bytes_of(kv) + bytes_of(prefix)};
}

void PrefixGrad::check() const {
  check_prefix(kName, dkv, dprefix);
  want_dtype(kName, "dprefix", dprefix, DType::kF32);
}
Cost PrefixGrad::cost() const {
  return {static_cast<double>(dprefix.elements() * dkv.shape[1]), bytes_of(dkv) + 2 * bytes_of(dprefix)};
}

}  // namespace megalith
