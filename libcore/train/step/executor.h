#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "libcore/model/stage.h"
#include "libcore/parallel/communicator.h"
#include "libcore/train/schedules/schedule.h"
#include "libcore/train/step/grad_buffer.h"

namespace megalith {

/// This rank's position in the pipeline, and its links: forward carries activations to the next rank,
/// backward their gradients to the previous one. They are two communicators, so that each link is first in,
/// first out (see plan_pipeline).
struct PipelineLinks {
  int rank = 0, ranks = 1;
  Communicator* forward = nullptr;  // may be null when ranks == 1
  Communicator* backward = nullptr;
};

/// The sizes that determine the executor's memory.
struct ExecutorSize {
  size_t tape = 0;  // bytes of one microbatch's activations (the largest chunk's)
  int tapes = 1;    // microbatch-chunks in flight: tapes_in_flight(plan)
  /// Messages in transit on one link: the largest number of microbatch-chunks in flight on any rank. Whatever
  /// waits on a link is in flight on the rank before it, so in training no send blocks, and ranks cannot wait
  /// for each other in a cycle.
  int messages = 1;
  Shape boundary = {};  // [s', b, h] between stages
  DType dtype = DType::kF32;
};

/// Executes a plan: for each step receives its input, runs the stage, and sends the result to the neighbour.
/// On one rank without a pipeline this is gradient accumulation. The stages must outlive it. `links`, an
/// arena of link_bytes(), must outlive the communicators too: it holds their messages.
class Executor {
 public:
  Executor(std::span<const Stage> chunks, const PipelineLinks&, const ExecutorSize&, Arena& links, Backend&);

  /// Runs the plan over microbatches[0..]. With ctx.training, gradients are added to the parameters' gradient
  /// views; otherwise the plan holds only forward steps. On the last pipeline rank the sum over the
  /// microbatches of grad_scale * (sum of token losses), the mean loss when grad_scale is 1 / (microbatches *
  /// tokens), is added to `loss` [1] f64. `grads`, which may be null, is told of each backward pass and each
  /// unit that is done.
  void run(const Ctx&, std::span<const Step> plan, std::span<const Microbatch>, View loss,
           GradBuffer* grads = nullptr);

  /// From now on `listener` receives the token losses [s, b] f32 of each micro-batch, identified by its
  /// number among the plan's microbatches, on ranks with the last stage; they are valid during the call.
  /// Empty: none.
  using LossListener = std::function<void(int microbatch, ConstView losses)>;
  void listen(LossListener listener) { listener_ = std::move(listener); }

  /// Bytes of the stages' inputs, one gradient and the messages in transit.
  static size_t link_bytes(const PipelineLinks&, const ExecutorSize&);
  /// Seconds that this rank's stages took in the last run(), without waiting for other stages, which
  /// distinguishes a slow rank from one that waits; on a GPU only the time of the calls.
  double stage_seconds() const { return stage_seconds_; }
  /// The maximum use of any tape so far, in bytes.
  size_t tape_peak() const;

 private:
  static constexpr int kFree = -1;
  struct Slot {
    explicit Slot(Arena memory) : tape(std::move(memory)) {}
    Tape tape;
    View in;  // received from the previous stage; empty on one rank
    int chunk = kFree, microbatch = 0;
  };
  void release(Slot&);
  /// The part of a boundary's memory that this micro-batch, which may be short, fills.
  static View boundary(const Ctx&, const View& whole, const Microbatch&);
  Slot& free_slot(const Step&);
  Slot& slot_of(const Step&);
  static void receive(const Ctx&, Communicator& link, View to, int peer);
  static void send(const Ctx&, Communicator& link, ConstView from, int peer);
  void forward(const Ctx&, const Step&, const Microbatch&, View loss);
  void backward(const Ctx&, const Step&, const Microbatch&);
  int last_depth() const { return static_cast<int>(chunks_.size()) * pipeline_.ranks - 1; }
  int depth(const Step& step) const { return step.chunk * pipeline_.ranks + pipeline_.rank; }

  std::span<const Stage> chunks_;
  PipelineLinks pipeline_;
  View gradient_;  // d(result), received from the next stage
  std::vector<std::unique_ptr<Slot>> slots_;
  LossListener listener_;
  double stage_seconds_ = 0;
};

}  // namespace megalith
