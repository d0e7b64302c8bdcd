#include "libcore/ops/cuda/backend/row_ops.h"

#include <algorithm>
#include <cstdint>

#include "libcore/base/error.h"
#include "libcore/ops/backend/cuda_workspaces.h"
#include "libcore/ops/backend/kernel_arguments.h"
#include "libcore/ops/cuda/kernels.h"
#include "libcore/ops/cuda/op_fields.h"

namespace megalith::cuda {
namespace {

/// The selected columns of rows are lines at equal distances. From one line's first element to the next
/// one's, and the length of a line, in elements.
int64_t line_distance(const Slots& slots) {
  return slots.slots * slots.inner;
}

int64_t line_length(const Slots& slots) {
  return slots.count * slots.inner;
}

/// The mask for rows [s, b, h]. A norm without dropout may have other rows.
DropoutMask dropout_mask(const DropoutKey& key, const Shape& rows) {
  return {.key = mask_key(key),
          .samples = samples_of(key),
          .batch = rows.rank == 3 ? rows[1] : 1,
          .positions = spans_of(key.rows)};
}

NormArgs norm_args_of(const auto& op, bool centred) {
  if (op.dropout.first_column != 0)
    fail(ErrorKind::kInternal, "cuda: the mask of a norm begins at column 0, not ", op.dropout.first_column);
  auto args = norm_args<NormArgs>(op);
  args.rows = rows_taken(op.part, op.x.shape.rows());
  args.centred = centred;
  args.mask = dropout_mask(op.dropout, op.x.shape);
  return args;
}

NormGradArgs norm_grad_args_of(const auto& op) {
  auto args = norm_grad_args<NormGradArgs>(op);
  args.rows = rows_taken(op.part, op.dy.shape.rows());
  return args;
}

HeadsArgs heads_args(const ConstView& x, const ConstView& q_w, const ConstView& k_w) {
  const Shape& s = x.shape;
  return {.x = x.data,
          .q_w = q_w.data,
          .k_w = k_w.data,
          .rows = s[0] * s[1],
          .groups = s[2],
          .r = s[3] - 2,
          .head = s[4]};
}
HeadsNormArgs heads_norm_args(const auto& op, void* y) {
  return {heads_args(op.x, op.q_w, op.k_w), y,
          op.squares.template as<float>(),  static_cast<float>(op.q_width),
          static_cast<float>(op.k_width),   op.eps};
}

/// The number of sequences, which is the number of rows per position.
int64_t batch_of(const ConstView& rows) {
  return std::max<int64_t>(1, rows.shape.rows() / std::max<int64_t>(1, rows.shape[0]));
}

LossArgs loss_args(const auto& op) {
  return {.loss = op.loss.template as<float>(),
          .logits = op.logits.data,
          .targets = op.targets.template as<int32_t>(),
          .mask = op.mask.template as<float>(),
          .rows = op.logits.shape.rows(),
          .stride = op.logits.shape.back(),
          .columns = op.columns,
          .scale = op.scale,
          .scale_at = op.scale_at.template as<float>(),
          .want_grad = op.want_grad};
}

}  // namespace

void run_on(Queue& queue, const AddSlots& op) {
  launch_add_lines(queue.stream(), storage_of(op.y.dtype),
                   {.to = at(op.y, op.slots.first * op.slots.inner),
                    .from = op.x.data,
                    .to_stride = line_distance(op.slots),
                    .lines = op.x.shape.rows() * op.slots.outer,
                    .columns = line_length(op.slots)});
}

void run_on(Queue& queue, const TakeSlots& op) {
  const auto element = static_cast<int64_t>(size_of(op.x.dtype)), length = element * line_length(op.slots);
  launch_copy_lines(queue.stream(), {.to = op.y.data,
                                     .from = at(op.x, op.slots.first * op.slots.inner),
                                     .to_stride = length,
                                     .from_stride = element * line_distance(op.slots),
                                     .lines = op.y.shape.rows() * op.slots.outer,
                                     .bytes = length});
}

void run_on(Queue& queue, const ScaleBy& op) {
  launch_scale(queue.stream(), storage_of(op.x.dtype), op.x.data, op.factor, op.x.elements());
}

void run_on(Queue& queue, const LayerNorm& op) {
  launch_norm(queue.stream(), storage_of(op.x.dtype), norm_args_of(op, true));
}

void run_on(Queue& queue, const RmsNorm& op) {
  launch_norm(queue.stream(), storage_of(op.x.dtype), norm_args_of(op, false));
}

void run_on(Queue& queue, const LayerNormGrad& op) {
  launch_norm_grad(queue.stream(), storage_of(op.dy.dtype), norm_grad_args_of(op),
                   {.dw = op.dw.as<float>(), .db = op.db.as<float>()}, queue.workspace(workspace_of(op)));
}

void run_on(Queue& queue, const RmsNormGrad& op) {
  launch_norm_grad(queue.stream(), storage_of(op.dy.dtype), norm_grad_args_of(op),
                   {.dw = op.dw.as<float>(), .db = nullptr}, queue.workspace(workspace_of(op)));
}

void run_on(Queue& queue, const HeadSums& op) {
  launch_head_sums(queue.stream(), storage_of(op.x.dtype),
                   {heads_args(op.x, op.q_w, op.k_w), op.sums.as<float>(), op.d.data});
}

void run_on(Queue& queue, const HeadsNorm& op) {
  launch_heads_norm(queue.stream(), storage_of(op.x.dtype), heads_norm_args(op, op.y.data));
}

void run_on(Queue& queue, const HeadsNormGrad& op) {
  launch_heads_norm_grad(
      queue.stream(), storage_of(op.x.dtype),
      {heads_norm_args(op, op.d.data), op.dots.as<float>(), op.dq_w.as<float>(), op.dk_w.as<float>()},
      queue.workspace(workspace_of(op)));
}

void run_on(Queue& queue, const Activate& op) {
  launch_activate(queue.stream(), storage_of(op.x.dtype), op.function, op.y.data, op.x.data, op.x.elements());
}

void run_on(Queue& queue, const ActivateGrad& op) {
  launch_activate_grad(queue.stream(), storage_of(op.x.dtype), op.function, op.dx.data, op.dy.data, op.x.data,
                       op.x.elements());
}

void run_on(Queue& queue, const SwiGlu& op) {
  launch_swiglu(queue.stream(), storage_of(op.x.dtype), op.y.data, op.x.data, op.y.shape.rows(),
                op.y.shape.back());
}

void run_on(Queue& queue, const SwiGluGrad& op) {
  launch_swiglu_grad(queue.stream(), storage_of(op.x.dtype),
                     {op.dx.data, op.dy.data, op.x.data, op.dy.shape.rows(), op.dy.shape.back()});
}

void run_on(Queue& queue, const Dropout& op) {
  launch_dropout(queue.stream(), storage_of(op.x.dtype),
                 {.y = op.y.data,
                  .x = op.x.data,
                  .residual = op.residual.data,
                  .rows = op.x.shape.rows(),
                  .columns = op.x.shape[2],
                  .first_column = op.key.first_column,
                  .mask = dropout_mask(op.key, op.x.shape)});
}

void run_on(Queue& queue, const Embedding& op) {
  const int64_t columns = op.y.shape.back();
  launch_embedding(queue.stream(), storage_of(op.y.dtype),
                   {.y = op.y.data,
                    .table = op.table.data,
                    .positions = op.positions.data,
                    .table_storage = storage_of(op.table.dtype),
                    .position_storage = op.positions ? storage_of(op.positions.dtype) : Storage::kF32,
                    .ids = op.ids.as<int32_t>(),
                    .starts = op.starts.as<int32_t>(),
                    .spans = spans_of(op.rows),
                    .rows = op.y.shape.rows(),
                    .batch = batch_of(op.y),
                    .columns = columns,
                    .vocabulary = op.table.shape.rows(),
                    .first_id = op.first_id});
}

void run_on(Queue& queue, const EmbeddingGrad& op) {
  const int64_t columns = op.dy.shape.back();
  launch_embedding_grad(queue.stream(), storage_of(op.dy.dtype),
                        {.dtable = op.dtable.as<float>(),
                         .dpositions = op.dpositions.as<float>(),
                         .dy = op.dy.data,
                         .ids = op.ids.as<int32_t>(),
                         .starts = op.starts.as<int32_t>(),
                         .spans = spans_of(op.rows),
                         .rows = op.dy.shape.rows(),
                         .batch = batch_of(op.dy),
                         .columns = columns,
                         .vocabulary = op.dtable.shape.rows(),
                         .first_id = op.first_id},
                        queue.workspace(workspace_of(op)));
}

void run_on(Queue& queue, const SoftmaxStats& op) {
  launch_softmax_stats(queue.stream(), storage_of(op.logits.dtype),
                       {.max = op.max.as<float>(),
                        .sum_exp = op.sum_exp.as<float>(),
                        .logits = op.logits.data,
                        .rows = op.logits.shape.rows(),
                        .stride = op.logits.shape.back(),
                        .columns = op.columns});
}

void run_on(Queue& queue, const SoftmaxRescale& op) {
  launch_softmax_rescale(queue.stream(), op.sum_exp.as<float>(), op.from.as<float>(), op.to.as<float>(),
                         op.sum_exp.elements());
}

void run_on(Queue& queue, const CrossEntropy& op) {
  launch_cross_entropy(queue.stream(), storage_of(op.logits.dtype),
                       {loss_args(op), op.max.as<float>(), op.sum_exp.as<float>(), op.first_id});
}

void run_on(Queue& queue, const SoftmaxLoss& op) {
  const bool launched = launch_softmax_loss(queue.stream(), storage_of(op.logits.dtype),
                                            {loss_args(op), op.max.as<float>(), op.sum_exp.as<float>()});
  if (launched) return;
  run_on(queue, op.stats());
  run_on(queue, op.cross_entropy());
}

void run_on(Queue& queue, const SumSquares& op) {
  const int64_t n = op.x.elements();
  launch_sum_squares(queue.stream(), storage_of(op.x.dtype), op.out.as<double>(), op.x.data, n,
                     queue.workspace(workspace_of(op)));
}

void run_on(Queue& queue, const ScaledSum& op) {
  const int64_t n = op.x.elements();
  launch_scaled_sum(queue.stream(),
                    {.out = op.out.as<double>(),
                     .x = op.x.as<float>(),
                     .n = n,
                     .scale = op.scale,
                     .scale_at = op.scale_at.as<float>()},
                    queue.workspace(workspace_of(op)));
}

void run_on(Queue& queue, const DecideStep& op) {
  launch_decide_step(queue.stream(), op.scalars.as<double>(), op.max_norm);
}

void run_on(Queue& queue, const AdamW& op) {
  launch_adamw(queue.stream(), {.master = op.master.as<float>(),
                                .m = op.m.data,
                                .v = op.v.as<float>(),
                                .grad = op.grad.as<float>(),
                                .value = op.value.data,
                                .value_storage = op.value ? storage_of(op.value.dtype) : Storage::kF32,
                                .m_storage = storage_of(op.m.dtype),
                                .n = op.master.elements(),
                                .scalars = op.scalars.as<double>(),
                                .constants = adam_constants(op)});
}

}  // namespace megalith::cuda
