#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/tensor/view.h"

namespace megalith {

/// How a parameter starts: normal(0, std) by place (philox of seed, name and element), or a constant.
struct Init {
  enum Kind : uint8_t { kNormal, kConstant } kind = kNormal;
  float value = 0;  // std, or the constant
  static Init normal(double std) { return {kNormal, static_cast<float>(std)}; }
  static Init constant(double value) { return {kConstant, static_cast<float>(value)}; }
};

constexpr int kWhole = -1;  // cut_axis of a parameter that every rank of the tensor group holds whole

/// One parameter, declared once: allocation, initial values, decay groups, ZeRO, checkpoint, convert and
/// autoplan read this.
struct Param {
  std::string name;  // Megatron's global name, without "model.": "decoder.layers.7.mlp.linear_fc1.weight"
  Shape global;      // before any cut
  /// Axis divided by the tensor group. Fused parts are an axis of their own, so that a cut never mixes them:
  /// fc1 of SwiGLU is {2, f, h} cut on 1; qkv is {groups, q + 2, head, h} cut on 0.
  int cut_axis = kWhole;
  Init init;
  bool decay = true;  // weight decay applies
  bool trainable = true;
  std::string tie;  // name of the Param it equals (tied word embeddings): saved, loaded, counted once, under
                    // that name
  bool grad_summed_over_tp = false;  // replicated over the tensor group, gradient a partial sum
  View value;                        // placed by ParamStore, in the model's dtype
  View grad;                         // f32; empty while nobody trains (inference, frozen)
};

/// The parameters of one rank, in the order of their declaration (the model's order of depth). Addresses are
/// stable.
class ParamTable {
 public:
  /// Adds a parameter; kInternal when the name is taken.
  Param& add(Param);
  Param* find(std::string_view name);
  std::deque<Param>& all() { return params_; }
  const std::deque<Param>& all() const { return params_; }
  /// Elements of all parameters, tied ones once.
  int64_t elements() const;

 private:
  std::deque<Param> params_;
};

}  // namespace megalith
