#pragma once

#include <string_view>

#include "libcore/ops/op.h"
#include "libcore/plan/price/candidate.h"
#include "libcore/plan/shape/parameter_count.h"

namespace megalith {

/// The choices in a candidate on which the price of one layer depends.
struct LayerShape {
  int tensor = 1, context = 1, micro_batch = 1;
  bool sequence = false;
  int expert = 1, expert_tensor = 1;
  bool operator==(const LayerShape&) const = default;
};

/// The cost of one layer for one microbatch on one device of a LayerShape, in seconds and bytes.
struct LayerCost {
  double forward = 0, backward = 0;                    // seconds of a layer's work, without communication
  double forward_comm = 0, backward_comm = 0;          // exposed communication of tensor and context ranks
  double forward_exchange = 0, backward_exchange = 0;  // exposed exchange of tokens with their experts
  /// Seconds that each kind of recomputation adds.
  double again_attention = 0, again_norm_act = 0, again_products = 0, again_full = 0;
  /// Bytes kept for the backward pass: without recomputation, and with each kind of it.
  double kept = 0, kept_attention = 0, kept_norm_act = 0, kept_products = 0, kept_full = 0;

  double forward_sent() const { return forward_comm + forward_exchange; }
  double backward_sent() const { return backward_comm + backward_exchange; }
  double forward_seconds() const { return forward + forward_sent(); }
  double backward_seconds() const { return backward + backward_sent(); }
  double seconds() const { return forward_seconds() + backward_seconds(); }
  double again(Recomputed) const;    // seconds that recomputation adds to a layer
  double kept_of(Recomputed) const;  // bytes that a layer keeps for the backward pass
};

/// The price of one layer, the head and the embedding for one microbatch on one device of a LayerShape:
/// everything in a candidate's price that does not depend on the pipeline, the data ranks or recomputation.
/// If only some layers of a model have experts, the inherited LayerCost is that of a layer with experts.
struct LayerPrice : LayerCost {
  LayerCost plain;  // the cost of a layer without experts, in a model that has both kinds
  /// Seconds of both passes; `head` includes the layers of further predictions.
  double head = 0, embedding = 0;
  double message = 0;       // bytes that each device of the next stage receives
  double sent = 0;          // the part of `message` that one device sends
  double put_together = 0;  // seconds of the gather in which tensor ranks join their parts of a message

  double kept_embedding = 0, kept_head = 0, logits = 0, transient = 0;
  ParameterCount parameters;    // of the model
  ParameterCount trained;       // those with gradients: the model's, or those of its adapters
  ParameterCount weight_bytes;  // bytes of the weights, those of adapters included
};

LayerPrice price_layer(const PlanProblem&, const LayerShape&);
/// Seconds of one op of this version's trainer (ops/op.h) on the device, given the op's name and cost. Uses
/// the rates of price_layer(), but ignores effects of a product's shape.
double op_seconds(const PlanProblem&, std::string_view op, const Cost&);
inline LayerShape shape_of(const Candidate& c) {
  return {c.tensor, c.context, c.micro_batch, c.sequence, c.expert, c.expert_tensor};
}

}  // namespace megalith
