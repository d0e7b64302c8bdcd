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
  size_t tape = 0;  // bytes of one microbatch's activations in the largest chunk
  int tapes = 1;    // number of tapes: tapes_in_flight(plan)
  /// Number of messages that one link can hold: the largest number of tapes of any rank. A message that waits
  /// on a link belongs to a tape of the sending rank. So in training no send blocks, and ranks cannot wait
  /// for each other in a cycle.
  int messages = 1;
  Shape boundary = {};  // shape of a message between stages: [s', b, h]
  DType dtype = DType::kF32;
};

/// Takes over the forward and the backward pass of a micro-batch, on a rank without a pipeline.
class PassRepeater {
 public:
  virtual ~PassRepeater() = default;
  /// A micro-batch of a step.
  struct Place {
    int microbatch;
    bool last;  // its backward pass is the last one of the step
  };
  /// Enqueues both passes over a micro-batch. May be called twice: once while the stream only records, and
  /// once if the recorded work cannot be repeated.
  using Passes = std::function<void(const Microbatch&)>;
  /// Enqueues both passes, or returns false if it leaves them to the caller.
  virtual bool run(const Ctx&, const Place&, const Passes&) = 0;
};

/// Executes a plan: for each step it receives the input, runs the stage, and sends the result to the
/// neighbour. On one rank without a pipeline this is gradient accumulation. The stages must outlive it.
/// `links`, an arena of link_bytes(), holds the messages of the communicators and must outlive these, too.
class Executor {
 public:
  Executor(std::span<const Stage> chunks, const PipelineLinks&, const ExecutorSize&, Arena& links, Backend&);

  /// Runs the plan over microbatches[0..]. With ctx.training, adds the gradients to the parameters' gradient
  /// views; otherwise the plan must hold only forward steps. The last pipeline rank adds to `loss` [1] f64
  /// the sum over the microbatches of grad_scale * (sum of token losses). This is the mean loss if grad_scale
  /// is 1 / (microbatches * tokens). `grads`, which may be null, is told of each backward pass and each unit
  /// that is done.
  void run(const Ctx&, std::span<const Step> plan, std::span<const Microbatch>, View loss,
           GradBuffer* grads = nullptr);

  /// Sets a listener for token losses; empty: none. On ranks with the last stage, it is called with the
  /// losses [s, b] f32 of each micro-batch and the micro-batch's number in the plan. The losses are valid
  /// only during the call.
  using LossListener = std::function<void(int microbatch, ConstView losses)>;
  void listen(LossListener listener) { listener_ = std::move(listener); }
  /// Sets what may take over whole micro-batches, which must outlive this object; null: nothing may.
  void set_repeater(PassRepeater* repeater) { repeater_ = repeater; }

  /// Bytes of memory for the stages' inputs, one gradient and the messages in transit.
  static size_t link_bytes(const PipelineLinks&, const ExecutorSize&);
  /// Seconds that this rank's stages took in the last run(), without the time in which they waited for other
  /// stages: this distinguishes a slow rank from a waiting one. On a GPU it is only the time of the host's
  /// calls.
  double stage_seconds() const { return stage_seconds_; }
  /// The maximum use of any tape so far, in bytes.
  size_t tape_peak() const;

 private:
  static constexpr int kFree = -1;
  struct Slot {
    explicit Slot(Arena memory) : tape(std::move(memory)) {}
    Tape tape;
    View in;  // input, received from the previous stage; empty without a pipeline
    int chunk = kFree, microbatch = 0;
  };
  /// One run's arguments, and the number of backward passes left for each chunk.
  struct Run;
  void do_step(Run&, const Step&, const Microbatch&);
  bool repeats(Run&, std::span<const Step> plan);
  void release(Slot&);
  /// The part of `whole` that this micro-batch fills; all of it unless the micro-batch is short.
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
  View gradient_;  // d(loss) / d(result of a stage), received from the next stage
  std::vector<std::unique_ptr<Slot>> slots_;
  LossListener listener_;
  PassRepeater* repeater_ = nullptr;
  double stage_seconds_ = 0;
};

}  // namespace megalith
