#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "libcore/ops/dropout.h"
#include "libcore/ops/optimizer.h"
#include "libcore/ops/random/mask_key.h"
#include "libcore/ops/step_scalars.h"
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

/// The arguments `Args` of a LayerNorm or RmsNorm. Fields that only one kind of kernels has are 0.
template <class Args>
Args norm_args(const auto& op) {
  Args args{};
  args.y = op.y.data;
  args.sum = op.sum.data;
  args.x = op.x.data;
  args.residual = op.residual.data;
  args.w = op.w.data;
  if constexpr (requires { op.b; }) {  // LayerNorm
    args.b = op.b.data;
    args.mean = op.mean.template as<float>();
  }
  args.rstd = op.rstd.template as<float>();
  args.columns = op.x.shape.back();
  args.eps = op.eps;
  args.part = op.part;
  return args;
}

/// The same of a LayerNormGrad or RmsNormGrad.
template <class Args>
Args norm_grad_args(const auto& op) {
  Args args{};
  args.dx = op.dx.data;
  args.dy = op.dy.data;
  args.x = op.x.data;
  args.w = op.w.data;
  args.add = op.add.data;
  if constexpr (requires { op.mean; }) args.mean = op.mean.template as<float>();  // LayerNormGrad
  args.rstd = op.rstd.template as<float>();
  args.columns = op.dy.shape.back();
  args.part = op.part;
  return args;
}

inline AdamConstants adam_constants(const AdamW& op) {
  return {
      .beta1 = op.beta1, .beta2 = op.beta2, .eps = op.eps, .weight_decay = op.weight_decay, .rate = op.rate};
}

}  // namespace megalith
