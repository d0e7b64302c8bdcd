#include "libcore/model/measure.h"

#include <memory>

#include "libcore/model/param_store.h"
#include "libcore/ops/dry/dry_backend.h"
#include "libcore/parallel/silent_comm.h"

namespace megalith {
namespace {

Cost total(Trace& trace) {
  Cost sum;
  for (const auto& [name, entry] : trace.entries()) sum += entry.cost;
  return sum;
}

/// The calls and costs of the ops in both traces.
std::map<std::string, Trace::Entry> joined(Trace& forward, Trace& backward) {
  std::map<std::string, Trace::Entry> ops = forward.entries();
  for (const auto& [name, entry] : backward.entries()) {
    ops[name].calls += entry.calls;
    ops[name].cost += entry.cost;
  }
  return ops;
}

/// The parameters of which each tensor-parallel rank has a summand of the gradient.
int64_t summed_over_tensor_ranks(const ParamTable& table) {
  int64_t count = 0;
  for (const Param& param : table.all()) count += param.grad_summed_over_tp && param.trainable ? 1 : 0;
  return count;
}

Microbatch dry_microbatch(Arena& arena, int64_t s, int64_t b) {
  const Shape shape{s, b};
  return {.tokens = arena.make(DType::kI32, shape, "tokens"),
          .labels = arena.make(DType::kI32, shape, "labels"),
          .loss_mask = arena.make(DType::kF32, shape, "loss mask"),
          .samples = arena.make(DType::kI64, {b}, "samples")};
}

}  // namespace

StageCost measure(const MeasureInput& input, Backend& dry) {
  Trace forward, backward;
  Stream forward_stream(dry, nullptr, &forward), backward_stream(dry, nullptr, &backward);

  ParamTable table(input.tuning);
  const Stage stage(input.model, input.layers, input.split, table, input.recompute);
  const ParamStore store(table, forward_stream, {.dtype = input.dtype});

  const int place = input.context_rank, size = input.context_size;
  SilentComm comm("tensor", input.split.rank, input.split.size), ascending("context", place, size),
      descending("context reversed", size - 1 - place, size);
  const Region region(comm, input.split.sequence, input.split.cut, dry.make_stream());
  const ContextRegion context(ascending, descending);
  Arena scratch = Arena::counting("scratch"), inputs = Arena::counting("inputs");
  Tape tape(Arena::counting("tape"));
  const int64_t rows = input.model.seq_length / size;
  const Microbatch microbatch = dry_microbatch(inputs, rows, input.micro_batch);
  const Shape passed{region.rows_outside(rows), input.micro_batch, input.model.hidden};
  const View in = input.layers.embedding ? View{} : inputs.make(input.dtype, passed, "input");
  const View dout = input.layers.head ? View{} : inputs.make(input.dtype, passed, "output gradient");

  forward.clear();
  stage.forward({.compute = forward_stream, .tp = region, .scratch = scratch, .cp = context}, microbatch, in,
                tape);
  stage.backward({.compute = backward_stream, .tp = region, .scratch = scratch, .cp = context}, microbatch,
                 dout, tape);
  const size_t tape_peak = tape.arena.peak(), tensor_bytes = comm.bytes(),
               context_bytes = ascending.bytes() + descending.bytes();
  const int64_t exchanges = comm.calls() + ascending.calls() + descending.calls();

  Stream silent(dry);
  Arena evaluation_scratch = Arena::counting("scratch");
  tape.clear();
  stage.forward(
      {.compute = silent, .tp = region, .scratch = evaluation_scratch, .training = false, .cp = context},
      microbatch, in, tape);
  return {.tape = tape_peak,
          .scratch = scratch.peak(),
          .evaluation_scratch = evaluation_scratch.peak(),
          .workspace = cuda_workspace(dry),
          .values = store.values().bytes(),
          .grads = store.grads().bytes(),
          .tensor_bytes = tensor_bytes,
          .context_bytes = context_bytes,
          .exchanges = exchanges,
          .summed = summed_over_tensor_ranks(table),
          .parameters = store.parameters(),
          .forward = total(forward),
          .backward = total(backward),
          .ops = joined(forward, backward)};
}

StageCost measure(const MeasureInput& input) {
  const std::unique_ptr<Backend> dry = input.on_gpu ? make_dry_cuda_backend() : make_dry_backend();
  return measure(input, *dry);
}

}  // namespace megalith
