#pragma once

#include "libcore/plan/shape/model_shape.h"

namespace megalith {

/// Numbers of parameters, of the whole model or of one rank.
struct ParameterCount {
  double block = 0;         // one transformer layer, without the experts that tokens are routed to
  double experts = 0;       // those, in one layer
  double plain_block = 0;   // a layer without experts, in a model that has some
  double embedding = 0;     // word and position embeddings
  double head = 0;          // an untied LM head, final norm, and layers of further predicted tokens
  double head_experts = 0;  // experts of the latter
  double head_copy = 0;     // the last stage's copy of tied word embeddings when the first stage is elsewhere
};

/// Numbers of ranks that share parameters: a layer's matrices, the experts, and the matrices of an expert.
struct ParameterShare {
  int tensor = 1, expert = 1, expert_tensor = 1;
};
ParameterCount count_parameters(const ModelShape&, const ParameterShare&);
inline ParameterCount count_parameters(const ModelShape& m, int tensor) {
  return count_parameters(m, ParameterShare{.tensor = tensor});
}

/// Parameters of the model; tied ones count once.
double total_parameters(const ModelShape&);
/// The parameters that a token uses: of the routed experts only as many as the router chooses.
double active_parameters(const ModelShape&);

/// Parameters of the matrices that a token uses in a layer, with or without experts: half of its forward
/// operations, not counting those of the scores.
double matrix_parameters(const ModelShape&, bool experts);

// Widths of one tensor rank's part of a layer.
double norm_width(const ModelConfig&);  // parameters of one norm over the hidden size
double gates(const ModelConfig&);       // matrices before the activation: 2 with SwiGLU
/// Width of keys or values; with fewer groups than ranks a group's projections are repeated.
double local_key_width(const ModelConfig&, int tensor);

}  // namespace megalith
