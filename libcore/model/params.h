#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libcore/parallel/exchange_cut.h"
#include "libcore/tensor/view.h"

namespace megalith {

/// The initial values of a parameter: a constant, or numbers from normal(0, std) that depend only on the
/// seed, the parameter's name and the element's index (Philox), so that every layout begins with the same
/// numbers.
struct Init {
  enum Kind : uint8_t { kNormal, kConstant } kind = kNormal;
  float value = 0;  // kNormal: the standard deviation; kConstant: the constant
  static Init normal(double std) { return {kNormal, static_cast<float>(std)}; }
  static Init constant(double value) { return {kConstant, static_cast<float>(value)}; }
};

/// How the vocabulary is placed in memory. It depends on the device, but a checkpoint, losses and initial
/// weights do not depend on it.
struct VocabularyForm {
  /// If `padded` is set, each rank has a multiple of this many rows, also without tensor parallelism. The
  /// rows of the logits then begin at multiples of 16 bytes, as fast matrix products need.
  static constexpr int64_t kRows = 128;
  static constexpr int64_t kLeastLogits = int64_t{128} << 20;

  bool padded = false;
  int64_t logits_bytes = kLeastLogits;  // the maximum size of the logits that exist at one time
};

/// This rank's place in the tensor group. sequence: the residual stream is also sharded along the sequence.
/// cut: how products and their exchanges are cut (parallel/exchange_cut.h).
struct TensorSplit {
  int rank = 0, size = 1;
  bool sequence = false;
  VocabularyForm vocabulary = {};
  ExchangeCut cut = {};
};

/// One LoRA adapter (Hu et al. 2021), for all outputs of a linear layer or for a part of them. A part
/// consists of whole slots of the outputs [outer, slots, inner]: QKV is [groups, q + 2, head], gate and up
/// are [1, 2, f].
struct LowRankTarget {
  std::string layer;             // the end of the layer's name: "self_attention.linear_qkv"
  std::string part;              // "q_proj"; the matrices are LAYER.lora_A.PART and LAYER.lora_B.PART
  int64_t first = 0, slots = 0;  // the part is slots [first, first + slots); 0 slots: all outputs
};

/// Which parameters of a model are trained, and which ones are added for that. By default, all are trained
/// and none are added.
struct TuningPlan {
  bool frozen = false;  // the model's own parameters keep their values, without gradients
  int64_t rank = 0;     // rank r of the LoRA adapters
  double scale = 1;     // factor of the adapters' output
  double dropout = 0;   // dropout probability of the adapters' input
  // LoRA+ (Hayou et al. 2024): learning rate of the matrices B, as a multiple of the others'.
  double rate_of_b = 1;
  bool int8 = false;   // frozen linear layers are kept in 8 bits (see QuantizeRows)
  int64_t prefix = 0;  // prefix tuning: positions before a sequence whose keys and values layers learn
  std::vector<LowRankTarget> targets = {};
};

constexpr int kWhole = -1;  // shard_axis if each tensor rank has the whole parameter

/// One parameter, declared once, so that allocation, initial values, decay groups, ZeRO, checkpoint, convert
/// and autoplan agree.
struct Param {
  std::string name;  // Megatron's global name, without "model.": "decoder.layers.7.mlp.linear_fc1.weight"
  Shape global;      // before sharding
  /// The axis that the tensor group divides. Fused parts have a separate axis, so that sharding never mixes
  /// them: fc1 of SwiGLU is {2, f, h} sharded on 1; qkv is {groups, q + 2, head, h} sharded on 0.
  int shard_axis = kWhole;
  /// This rank's part: entries [offset, offset + local[shard_axis]) of shard_axis. The last part may reach
  /// beyond global (a padded vocabulary), so that all ranks' parts are equal; the rows beyond global are
  /// zero, are never used and are not saved. If `local` is empty, ParamTable::add() sets it to `global`.
  Shape local = {};
  int64_t offset = 0;
  Init init = {};
  bool decay = true;  // whether weight decay applies
  bool trainable = true;
  bool adapter = false;  // not part of the model, but added to it by a TuningPlan
  std::string tie = {};  // name of the Param whose values it shares (tied word embeddings); both are saved,
                         // loaded and counted once, under that name
  double rate = 1;       // factor of this parameter's learning rate
  bool int8 = false;     // kept in 8 bits with scales; only for a frozen matrix
  // Replicated over the tensor group; each rank computes a summand of its gradient.
  bool grad_summed_over_tp = false;
  int unit = 0;      // number that ParamTable::begin_unit() returned; set by add()
  View value = {};   // placed by ParamStore in the model's dtype, or by WeightStore
  View scales = {};  // for an i8 value: [rows] f32; see Project
  View grad = {};    // f32; empty if it is not trained (inference, frozen)
};

/// Shards `param` along `axis` over the tensor group. Each rank gets `share` entries or, if `share` is 0, an
/// equal part; kInternal if equal parts are not possible.
Param cut(Param param, int axis, const TensorSplit&, int64_t share = 0);

/// A tensor that is computed once and never trained or saved: rotary angles. The table holds it, so that it
/// is placed together with the parameters and exists once for all layers.
struct Constant {
  std::string name;
  Shape shape;
  std::function<std::vector<float>()> make;  // computes its values
  View view;                                 // [shape] f32, placed by ParamStore
};

/// The parameters of one rank in the order of their declaration, from the bottom of the model to the top.
/// Addresses are stable: layers keep pointers to their parameters. A parameter keeps its name.
class ParamTable {
 public:
  explicit ParamTable(TuningPlan plan = {}) : plan_(std::move(plan)) {}
  /// Says which parameters are frozen and which ones layers declare in addition to their own.
  const TuningPlan& plan() const { return plan_; }
  /// Adds a parameter, which is frozen if the plan says so. kInternal if the name is taken: files identify
  /// parameters by name.
  Param& add(Param);
  /// The parameters added from now on form a unit: a backward pass completes all of their gradients at the
  /// same time, so that their reduction can begin (see GradSink). Returns the unit's number; units are
  /// numbered from 0, from the bottom of the model to the top.
  int begin_unit() { return ++units_ - 1; }
  int units() const { return units_; }
  Param* find(std::string_view name);
  /// Adds a constant, or finds the existing one of this name.
  Constant& constant(const std::string& name, Shape, std::function<std::vector<float>()> make);
  std::deque<Constant>& constants() { return constants_; }
  std::deque<Param>& all() { return params_; }
  const std::deque<Param>& all() const { return params_; }
  /// Elements of all parameters before sharding; tied ones count once.
  int64_t elements() const;

 private:
  TuningPlan plan_;
  std::deque<Param> params_;
  std::unordered_map<std::string, size_t> places_;  // in params_, by name
  std::deque<Constant> constants_;
  int units_ = 0;
};

}  // namespace megalith
