#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/tensor/view.h"

namespace megalith {

/// How a parameter starts: a constant, or normal(0, std) by place (Philox of seed, name and element), so that
/// every layout begins with the same numbers.
struct Init {
  enum Kind : uint8_t { kNormal, kConstant } kind = kNormal;
  float value = 0;  // std, or the constant
  static Init normal(double std) { return {kNormal, static_cast<float>(std)}; }
  static Init constant(double value) { return {kConstant, static_cast<float>(value)}; }
};

/// This rank's place in the tensor group. sequence: the residual stream is cut along the sequence as well.
struct TensorSplit {
  int rank = 0, size = 1;
  bool sequence = false;
};

/// One adapter of LoRA (Hu et al. 2021) beside a linear layer, or beside some of its outputs: a layer whose
/// outputs are [outer, slots, inner] (QKV is [groups, q + 2, head], gate and up are [1, 2, f]) has parts of
/// whole slots.
struct LowRankTarget {
  std::string layer;             // ending of the layer's name: "self_attention.linear_qkv"
  std::string part;              // "q_proj"; the matrices are LAYER.lora_A.PART and LAYER.lora_B.PART
  int64_t first = 0, slots = 0;  // of the layer's slots; 0 slots: all outputs
};

/// Which parameters of a model are trained, and what is added to it for that. As declared: everything,
/// nothing.
struct TuningPlan {
  bool frozen = false;   // the model's own parameters keep their values, without gradients
  int64_t rank = 0;      // of the adapters
  double scale = 1;      // of what they add
  double dropout = 0;    // of what they read
  double rate_of_b = 1;  // LoRA+ (Hayou et al. 2024): learning rate of the matrices B over that of the others
  bool int8 = false;     // frozen linear layers are in 8 bits (see QuantizeRows)
  int64_t prefix = 0;    // positions before each sequence whose keys and values every layer learns
  std::vector<LowRankTarget> targets = {};
};

constexpr int kWhole = -1;  // cut_axis where each tensor rank has all of it

/// One parameter, declared once, so that allocation, initial values, decay groups, ZeRO, checkpoint, convert
/// and autoplan agree.
struct Param {
  std::string name;  // Megatron's global name, without "model.": "decoder.layers.7.mlp.linear_fc1.weight"
  Shape global;      // before any cut
  /// Axis divided by the tensor group. Fused parts are an axis of their own, so that a cut never mixes them:
  /// fc1 of SwiGLU is {2, f, h} cut on 1; qkv is {groups, q + 2, head, h} cut on 0.
  int cut_axis = kWhole;
  /// This rank's part: entries [offset, offset + local[cut_axis]) of cut_axis. A last part may reach beyond
  /// global (a padded vocabulary), so that all ranks' parts are equal: those rows are zero, take no part in
  /// anything and are not saved. Left empty, ParamTable::add sets it to global.
  Shape local = {};
  int64_t offset = 0;
  Init init = {};
  bool decay = true;  // weight decay applies
  bool trainable = true;
  bool adapter = false;  // no part of the model, but added to it by a TuningPlan
  std::string tie = {};  // name of the Param it equals (tied word embeddings): saved, loaded, counted once,
                         // under that name
  double rate = 1;       // by which the learning rate is multiplied
  bool int8 = false;     // kept in 8 bits, with scales; only of a frozen matrix
  bool grad_summed_over_tp = false;  // replicated over the tensor group, gradient a partial sum
  int unit = 0;                      // of ParamTable::begin_unit(); set by add()
  View value = {};                   // placed by ParamStore, in the model's dtype; or by WeightStore
  View scales = {};                  // of an i8 value: [rows] f32; see Project
  View grad = {};                    // f32; empty while nobody trains (inference, frozen)
};

/// Cuts `param` on `axis` over the tensor group; `share` entries a rank, 0: evenly (kInternal when uneven).
Param cut(Param param, int axis, const TensorSplit&, int64_t share = 0);

/// A tensor that is computed once and never trained or saved: rotary angles. It stands in the table so that
/// it is placed with the parameters, on any backend, once for all layers.
struct Constant {
  std::string name;
  Shape shape;
  std::function<std::vector<float>()> make;  // its values
  View view;                                 // [shape] f32, placed by ParamStore
};

/// The parameters of one rank, in the order of their declaration (the model's order of depth). Addresses are
/// stable, because layers keep pointers to theirs. Found by name by linear search, since only loading asks by
/// name.
class ParamTable {
 public:
  explicit ParamTable(TuningPlan plan = {}) : plan_(std::move(plan)) {}
  /// What layers declare beside their own parameters.
  const TuningPlan& plan() const { return plan_; }
  /// Adds a parameter; a frozen one when the plan says so. kInternal when the name is taken, because files
  /// know parameters by name.
  Param& add(Param);
  /// The parameters added from now on form a unit: a backward pass is done with all of their gradients at one
  /// moment, so that their reduction can begin (see GradSink). Returns its number; units are numbered from 0
  /// in the model's order of depth.
  int begin_unit() { return ++units_ - 1; }
  int units() const { return units_; }
  Param* find(std::string_view name);
  /// Adds a constant, or finds the one of this name.
  Constant& constant(const std::string& name, Shape, std::function<std::vector<float>()> make);
  std::deque<Constant>& constants() { return constants_; }
  std::deque<Param>& all() { return params_; }
  const std::deque<Param>& all() const { return params_; }
  /// Elements of all parameters before any cut, tied ones once.
  int64_t elements() const;

 private:
  TuningPlan plan_;
  std::deque<Param> params_;
  std::deque<Constant> constants_;
  int units_ = 0;
};

}  // namespace megalith
