#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace megalith {

/// How Megatron divides a parameter among tensor-parallel ranks.
enum class TensorCut : uint8_t {
  kWhole,    // every rank has all of it: norms, biases of row-parallel layers, the position table
  kRows,     // the vocabulary, the first MLP layer
  kQkv,      // rows: whole groups
  kGateUp,   // rows of the gates and of the ups, each rank [its gates; its ups]
  kColumns,  // inputs of row-parallel layers
};
/// How Megatron cuts a tensor over its tensor-parallel ranks, by our name for it
/// ("decoder.layers.3.mlp.linear_fc1.weight").
TensorCut cut_of(std::string_view ours, bool swiglu);

/// A parameter of a Megatron checkpoint by our name.
struct MegatronName {
  std::string ours;  // '#' stands for the layer
  int layer = -1;    // as numbered in the file; -1: belongs to no layer
};
/// Our name for a key of a Megatron state dict, without "model". The key may be of any generation: legacy,
/// legacy with the new names of norms, the Transformer Engine flavour of either, mcore. Nothing for other
/// keys.
std::optional<MegatronName> our_name(std::string_view key);

/// Keys that hold no parameter: "…_extra_state", rotary tables.
bool is_skipped(std::string_view key);

}  // namespace megalith
