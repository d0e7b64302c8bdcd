#include "tests/emulator/nccl/ring_sums.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "libcore/ops/cuda/element_maths.h"
#include "tests/emulator/report.h"

namespace megalith::emulator {
namespace {

template <class T>
auto wider(T value) {
  if constexpr (std::is_class_v<T>)
    return cuda::widen(value);
  else
    return value;
}
template <class T, class Wide>
T rounded(Wide value) {
  if constexpr (std::is_class_v<T>)
    return cuda::narrow<T>(value);
  else
    return value;
}

template <class Wide>
Wide combine(Wide a, Wide b, ncclRedOp_t reduce) {
  if (reduce == ncclSum) {
    if constexpr (std::is_integral_v<Wide>) {  // wraps
      using Unsigned = std::make_unsigned_t<Wide>;
      return static_cast<Wide>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
  if constexpr (std::is_integral_v<Wide>)
    return std::max(a, b);
  else
    return std::fmax(a, b);
}

template <class T>
void reduce_as(const RingSum& sum, std::byte* out) {
  const size_t ranks = sum.inputs.size();
  for (uint64_t i = 0; i < sum.elements; ++i) {
    const auto at = [&](size_t step) {
      T value;
      std::memcpy(&value, sum.inputs[(static_cast<size_t>(sum.first) + step) % ranks] + i * sizeof(T),
                  sizeof(T));
      return value;
    };
    T all = at(0);
    for (size_t step = 1; step < ranks; ++step)
      all = rounded<T>(combine(wider(all), wider(at(step)), sum.reduce));
    std::memcpy(out + i * sizeof(T), &all, sizeof(T));
  }
}

}  // namespace

size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 4;
  }
}

void reduce_ring(const RingSum& sum, std::byte* out) {
  if (sum.reduce != ncclSum && sum.reduce != ncclMax)
    end_with("nccl: a reduction that is neither sum nor maximum");
  switch (sum.type) {
    case ncclFloat16:
      return reduce_as<cuda::Half>(sum, out);
    case ncclBfloat16:
      return reduce_as<cuda::Bf16>(sum, out);
    case ncclFloat32:
      return reduce_as<float>(sum, out);
    case ncclFloat64:
      return reduce_as<double>(sum, out);
    case ncclInt32:
      return reduce_as<int32_t>(sum, out);
    case ncclInt64:
      return reduce_as<int64_t>(sum, out);
    default:
      end_with("nccl: a reduction of elements of type " + std::to_string(sum.type));
  }
}

}  // namespace megalith::emulator
