#pragma once

#include <string>

#include "libcore/model/norm.h"

namespace megalith {

/// The norms of queries and keys (Megatron's --qk-layernorm; Qwen 3): each head of a packed QKV is normalized
/// by itself, before the rotation. All query heads of a layer share one weight, all key heads another one.
/// Each tensor rank has both whole and computes the part of their gradients that comes from its heads.
class HeadNorms {
 public:
  /// prefix: "decoder.layers.0.self_attention.".
  HeadNorms(ParamTable&, const TensorSplit&, const ModelConfig&, const std::string& prefix);

  struct Saved {
    Norm::Saved query, key;
  };
  Saved make_saved(Arena&, ConstView qkv) const;

  /// qkv, normed: [s, b, groups, q + 2, head]; may be the same memory. Values are copied.
  void forward(const Ctx&, View normed, ConstView qkv, const Saved&) const;
  /// d: gradient of `normed`; on return, gradient of `qkv`, which forward() read.
  void backward(const Ctx&, View d, ConstView qkv, const Saved&) const;

 private:
  Norm query_, key_;
};

}  // namespace megalith
