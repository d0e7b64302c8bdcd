#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace megalith {

/// How Megatron divides a parameter among tensor-parallel ranks.
enum class TensorSharding : uint8_t {
  kWhole,    // every rank has the whole tensor: norms, biases of row-parallel layers, the position table
  kRows,     // embedding table, head, first MLP layer: each rank has consecutive rows
  kQkv,      // QKV: each rank has the rows of whole query groups
  kGateUp,   // gates and ups are sharded separately: each rank has [its gates; its ups]
  kColumns,  // weights of row-parallel layers: each rank has consecutive columns (inputs)
};
/// How Megatron divides a tensor among its tensor-parallel ranks. `ours` is our name
/// ("decoder.layers.3.mlp.linear_fc1.weight").
TensorSharding sharding_of(std::string_view ours, bool swiglu);

/// A parameter of a Megatron checkpoint, under our name.
struct MegatronName {
  std::string ours;  // '#' stands for the layer
  int layer = -1;    // the layer's number in the file; -1 if the parameter belongs to no layer
};
/// Our name for a key below "model" in a Megatron checkpoint. The key may be of any generation: legacy,
/// legacy with the new names of norms, either of these two as Transformer Engine names it, or mcore. Returns
/// nothing for any other key.
std::optional<MegatronName> our_name(std::string_view key);

/// Whether a key holds no parameter: "…_extra_state", rotary tables.
bool is_skipped(std::string_view key);

/// Whether a parameter of this name, ours or Megatron's, with so many axes is a bias or the weight of a norm.
/// Our biases of queries, keys and values have three axes. Megatron does not decay these parameters
/// (core/optimizer: _get_param_groups), nor do we, unless a run decays all.
bool is_vector(std::string_view name, int axes);

}  // namespace megalith
