#include "libcore/model/mlp.h"

#include <cmath>

namespace megalith {
namespace {

std::string prefix(int layer) {
  return concat("decoder.layers.", layer, ".mlp.");
}

LinearShape fc1_shape(const ModelConfig& config, int layer) {
  const Shape plain{config.ffn_hidden, config.hidden};
  const Shape gated{2, config.ffn_hidden, config.hidden};  // gate, up
  return {.name = prefix(layer) + "linear_fc1",
          .weight = config.swiglu ? gated : plain,
          .shard_axis = config.swiglu ? 1 : 0,
          .init_std = config.init_std,
          .bias = config.linear_bias,
          .layer = layer,
          .site = 8};
}

LinearShape fc2_shape(const ModelConfig& config, int layer) {
  return {.name = prefix(layer) + "linear_fc2",
          .weight = {config.hidden, config.ffn_hidden},
          .shard_axis = 1,
          .init_std = config.init_std / std::sqrt(2.0 * config.layers),
          .bias = config.linear_bias,
          .layer = layer,
          .site = 10};
}

}  // namespace

Mlp::Mlp(ParamTable& table, const TensorSplit& split, const ModelConfig& config, int layer)
    : gated_(config.swiglu),
      activation_(config.activation()),
      ffn_(config.ffn_hidden / split.size),
      fc1_(table, split, fc1_shape(config, layer)),
      fc2_(table, split, fc2_shape(config, layer)) {}

Mlp::Saved Mlp::make_saved(Arena& arena, int64_t s, int64_t b, DType dtype) const {
  Saved saved{.fc1 = arena.make(dtype, {s, b, fc1_.out()}, "fc1 output"), .act = {}};
  if (fc2_.keeps_input()) saved.act = make_activation(arena, saved.fc1);
  return saved;
}

View Mlp::make_activation(Arena& arena, ConstView fc1) const {
  return arena.make(fc1.dtype, {fc1.shape[0], fc1.shape[1], ffn_}, "activation");
}

View Mlp::forward(const Ctx& ctx, View y, ConstView x, const Saved& saved) const {
  const ArenaScope scope(ctx.scratch);
  const View act = saved.act ? saved.act : make_activation(ctx.scratch, saved.fc1);
  if (is_gelu()) {
    fc1_.entering(ctx, act, x, saved.fc1);
  } else {
    fc1_.entering(ctx, saved.fc1, x);
    activate(ctx, act, saved.fc1);
  }
  return fc2_.leaving(ctx, y, act);
}

View Mlp::backward(const Ctx& ctx, View dx, const Region::Late& dy, const Region::Late& x,
                   const Saved& saved) const {
  const ArenaScope scope(ctx.scratch);
  const bool apart = saved.act && dy.parts.size() > 1;  // see backward_entering()
  const View dact = saved.act && !apart ? saved.act : make_activation(ctx.scratch, saved.fc1);
  // The gradient of the activation or, with GELU, already that of its input.
  fc2_.backward_entering(ctx, dact, dy, saved.act ? saved.act : dact, is_gelu() ? saved.fc1 : View{});
  const View dfc1 = is_gelu() ? dact : activate_grad(ctx, dact, saved.fc1);
  x.wait(ctx.compute);
  return fc1_.backward_leaving(ctx, dx, dfc1, x.rows);
}

void Mlp::activate(const Ctx& ctx, View y, ConstView x) const {
  if (gated_)
    return run(ctx.compute, SwiGlu{.y = rows(y), .x = x.as_shape({x.elements() / (2 * ffn_), 2, ffn_})});
  run(ctx.compute, Activate{.y = y, .x = x, .function = activation_});
}

View Mlp::activate_grad(const Ctx& ctx, View dy, View fc1) const {
  if (gated_) {
    const View x = fc1.as_shape({fc1.elements() / (2 * ffn_), 2, ffn_});
    run(ctx.compute, SwiGluGrad{.dx = x, .dy = rows(dy), .x = x});
    return fc1;
  }
  run(ctx.compute, ActivateGrad{.dx = dy, .dy = dy, .x = fc1, .function = activation_});
  return dy;
}

View Mlp::rows(View view) const {
  return view.as_shape({view.elements() / ffn_, ffn_});
}

}  // namespace megalith
