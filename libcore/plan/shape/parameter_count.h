#pragma once

#include <array>

#include "libcore/plan/shape/model_shape.h"

namespace megalith {

/// Numbers of parameters, of the whole model or of one rank.
struct ParameterCount {
  double block = 0;         // one transformer layer, without the experts that tokens are routed to
  double experts = 0;       // the experts of one layer that tokens are routed to
  double plain_block = 0;   // a layer without experts; 0 in a dense model
  double embedding = 0;     // word and position embeddings
  double head = 0;          // an untied LM head, final norm, and layers of further predicted tokens
  double head_experts = 0;  // experts in the layers of further predicted tokens
  /// The last stage's copy of tied word embeddings, if the first stage is on another rank.
  double head_copy = 0;

  ParameterCount& operator*=(double factor);
};

/// Numbers of ranks that share a layer's matrices (tensor), its experts (expert), and each expert's matrices
/// (expert_tensor).
struct ParameterShare {
  int tensor = 1, expert = 1, expert_tensor = 1;
};
ParameterCount count_parameters(const ModelShape&, const ParameterShare&);
inline ParameterCount count_parameters(const ModelShape& m, int tensor) {
  return count_parameters(m, ParameterShare{.tensor = tensor});
}

/// Whether queries, keys and values have one adapter together, not one each: in GPT-2, whose Hugging Face
/// model has one matrix for them (c_attn). Of the models that can be tuned, only GPT-2 has learned positions
/// (convert/sources/hf_config.h).
bool joins_projections(const ModelConfig&);
/// One rank's part of a matrix [out, in] of a layer that has an adapter, and how many of them a layer has.
struct AdaptedLinear {
  double out = 0, in = 0, times = 0;
};
/// The linear layers of one dense transformer layer, all of which have adapters; some may be there 0 times.
std::array<AdaptedLinear, 5> adapted_linears(const ModelConfig&, int tensor);
/// One rank's parameters of the LoRA adapters (Hu et al. 2021) on all linear layers of one dense transformer
/// layer: [rank, in] and [out, rank] for the projections of queries, keys, values (joins_projections()) and
/// output, and for each matrix of the feed-forward block. Of each two, tensor ranks divide the one along the
/// axis that they divide in the layer itself; each has the other one whole (model/low_rank.cpp).
double adapter_parameters(const ModelConfig&, int tensor, int rank);
/// One rank's part of the linear layers of one dense transformer layer.
struct LinearCount {
  double elements = 0;  // of the matrices, without biases
  double rows = 0;      // outputs
};
LinearCount count_linears(const ModelConfig&, int tensor);

/// Parameters of the model; tied ones count once.
double total_parameters(const ModelShape&);
/// The parameters that one token uses: of the routed experts, only those that the router chooses.
double active_parameters(const ModelShape&);

/// Parameters of the matrices that a token is multiplied by in a layer, with or without `experts`. A token's
/// forward pass takes two operations for each of these parameters, and those of the attention scores in
/// addition.
double matrix_parameters(const ModelShape&, bool experts);

// Widths of one tensor rank's part of a layer.
double norm_width(const ModelConfig&);   // parameters of one norm over the hidden size
double layer_norms(const ModelConfig&);  // norms over the hidden size of one layer
double gates(const ModelConfig&);        // matrices before the activation: 2 with SwiGLU
/// Width of the keys, or of the values. If there are fewer query groups than ranks, several ranks have a copy
/// of a group's projections.
double local_key_width(const ModelConfig&, int tensor);

}  // namespace megalith
