#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "libcore/ops/dropout.h"
#include "libcore/ops/random/mask_key.h"
#include "libcore/tensor/view.h"

/// Converts fields of ops to the arguments that CPU and CUDA kernels take.
namespace megalith {

/// The mask for this key; all fields are 0 if nothing is dropped.
inline MaskKey mask_key(const DropoutKey& key) {
  if (key.p == 0) return {0, 0, 0, 0};
  const double keep = 1.0 - static_cast<double>(key.p);
  return {.seed = key.seed,
          .layer_site = key.layer * DropoutKey::kSites + key.site,
          .last_kept = static_cast<uint32_t>(std::ceil(keep * 0x1p32) - 1),
          .scale = static_cast<float>(1.0 / keep)};
}

/// The sample numbers [b]; null if nothing is dropped.
inline const int64_t* samples_of(const DropoutKey& key) {
  return key.p == 0 ? nullptr : key.samples.as<int64_t>();
}

/// The address of an element of a dense tensor.
template <class V>
auto* at(const V& view, int64_t element) {
  using Byte = std::conditional_t<std::is_same_v<V, View>, std::byte, const std::byte>;
  return static_cast<Byte*>(view.data) + element * static_cast<int64_t>(size_of(view.dtype));
}

}  // namespace megalith
