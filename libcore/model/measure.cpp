#include "libcore/model/measure.h"

#include <memory>
#include <utility>

#include "libcore/model/param_store.h"

namespace megalith {
namespace {

/// Stands for a tensor group of a given size and moves nothing.
class SilentComm final : public Communicator {
 public:
  SilentComm(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_reduce(Stream&, View, Reduce) override {}
  void all_gather(Stream&, View, ConstView) override {}
  void reduce_scatter(Stream&, View, ConstView, Reduce) override {}
  void all_to_all(Stream&, View, ConstView) override {}
  void send(Stream&, ConstView, int) override {}
  void recv(Stream&, View, int) override {}
  void broadcast(Stream&, View, int) override {}
  std::unique_ptr<Communicator> split(int, int) override { return make_self_comm(); }
  void abort(const std::string&) override {}

 private:
  int rank_, size_;
};

Cost total(const Trace& trace) {
  Cost sum;
  for (const auto& [name, entry] : trace.entries()) sum += entry.cost;
  return sum;
}

Microbatch dry_microbatch(Arena& arena, const ModelConfig& model, int64_t b) {
  const Shape shape{model.seq_length, b};
  return {.tokens = arena.make(DType::kI32, shape, "tokens"),
          .labels = arena.make(DType::kI32, shape, "labels"),
          .loss_mask = arena.make(DType::kF32, shape, "loss mask"),
          .samples = arena.make(DType::kI64, {b}, "samples")};
}

}  // namespace

StageCost measure(const MeasureInput& input) {
  const std::unique_ptr<Backend> dry = make_dry_backend();
  Trace forward, backward;
  Stream forward_stream(*dry, nullptr, &forward), backward_stream(*dry, nullptr, &backward);

  ParamTable table;
  const Stage stage(input.model, input.layers, input.split, table, input.recompute);
  const ParamStore store(table, forward_stream, {.dtype = input.dtype});

  SilentComm comm(input.split.rank, input.split.size);
  const Region region(comm, input.split.sequence);
  Arena scratch = Arena::counting("scratch"), inputs = Arena::counting("inputs");
  Tape tape(Arena::counting("tape"));
  const Microbatch microbatch = dry_microbatch(inputs, input.model, input.micro_batch);
  const Shape passed{region.rows_outside(input.model.seq_length), input.micro_batch, input.model.hidden};
  const View in = input.layers.embedding ? View{} : inputs.make(input.dtype, passed, "input");
  const View dout = input.layers.head ? View{} : inputs.make(input.dtype, passed, "output gradient");

  forward.clear();
  stage.forward({.compute = forward_stream, .tp = region, .scratch = scratch}, microbatch, in, tape);
  stage.backward({.compute = backward_stream, .tp = region, .scratch = scratch}, microbatch, dout, tape);
  const size_t tape_peak = tape.arena.peak();

  Stream silent(*dry);
  Arena evaluation_scratch = Arena::counting("scratch");
  tape.clear();
  stage.forward({.compute = silent, .tp = region, .scratch = evaluation_scratch, .training = false},
                microbatch, in, tape);
  return {.tape = tape_peak,
          .scratch = scratch.peak(),
          .evaluation_scratch = evaluation_scratch.peak(),
          .values = store.values().bytes(),
          .grads = store.grads().bytes(),
          .parameters = store.parameters(),
          .forward = total(forward),
          .backward = total(backward)};
}

}  // namespace megalith
