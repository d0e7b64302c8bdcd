#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "libcore/model/param_store.h"
#include "libcore/model/stage.h"
#include "libcore/parallel/groups.h"
#include "libcore/train/host/step_results.h"
#include "libcore/train/objective/judgement.h"
#include "libcore/train/schedules/loss_scale.h"
#include "libcore/train/step/batch.h"
#include "libcore/train/step/executor.h"
#include "libcore/train/step/grad_buffer.h"
#include "libcore/train/step/layout.h"
#include "libcore/train/step/memory.h"
#include "libcore/train/step/optimizer.h"
#include "libcore/train/step/param_gather.h"
#include "libcore/train/step/repeated_passes.h"
#include "libcore/train/step/run_trace.h"

namespace megalith {

/// One rank's part of a model with everything that training needs: parameters, gradients, optimizer and
/// executor, in arenas of the sizes that run_memory() computes. A Trainer does all the mathematics of a run;
/// the loop decides when to evaluate, log and save. Every rank of `world` creates one and calls the same
/// functions with the same arguments. Losses and decisions are the same on all ranks; what describes one
/// rank, such as own_loss() and memory(), is not.
class Trainer {
 public:
  /// The parameters have no values yet: call initialize(), or load them through params() and call
  /// optimizer().take_values(). Backend and world must outlive it.
  Trainer(const RunShape&, Backend&, Communicator& world);

  /// Sets the parameters to random values, which depend on train.seed but not on the layout. Frozen
  /// parameters get none.
  void initialize();

  struct StepResult {
    /// In nats: the mean over the step's unmasked tokens if SampleSource::counted is set, otherwise the mean
    /// of the micro-batches' means; after set_judge(), the judge's loss.
    double loss = 0;
    double grad_norm = 0;   // before clipping
    bool skipped = false;   // loss or gradient was not finite: nothing was updated
    bool stop = false;      // some rank wants the run to end
    double loss_scale = 1;  // the scale of the next step, which is the one that Megatron logs
  };
  /// Does one optimizer step with the samples from number `consumed` on. When a rank has enqueued its part of
  /// the gradient, it calls `stop`, which returns whether this rank wants the run to end (for example because
  /// of a signal).
  StepResult step(const SampleSource&, int64_t consumed, double learning_rate,
                  const std::function<bool()>& stop = {});
  /// The learning rate of a step, and what it is if the step before was skipped; both are the same where the
  /// result of that step was returned.
  struct StepRate {
    double value = 0, if_skipped = 0;
  };
  /// step() in two halves: begin_step() enqueues a step, finish_step() waits for the earliest one whose
  /// result was not returned. A second step may begin before that if can_run_ahead(), and has the same bits;
  /// otherwise begin_step() throws kInternal.
  void begin_step(const SampleSource&, int64_t consumed, const StepRate&, const std::function<bool()>& stop);
  StepResult finish_step();
  /// Whether the next step can be enqueued while the device does this one: with a device that copies late,
  /// unless the next step's loss scale or weights depend on the result.
  bool can_run_ahead() const;
  /// How many labels an evaluation has counted in the loss, and how many of them had the largest logit.
  struct LabelCounts {
    double counted = 0, chosen = 0;
  };
  /// Mean loss over the samples of one step, without dropout. Adds to `counts` unless it is null, which it
  /// must be without SampleForm::gaps and after set_judge().
  double evaluate(const SampleSource&, int64_t consumed, LabelCounts* counts = nullptr);
  /// For each sample of one step, in order, the sum of its token losses, computed without dropout. The result
  /// is the same on all ranks. Only on the CPU.
  std::vector<double> sample_losses(const SampleSource&, int64_t consumed);

  /// From the next step or evaluation on, minimises what `judge` returns. A step then needs a second forward
  /// pass, because the weights are known only after the losses of all samples. Only on the CPU, and only
  /// without dropout, which would differ between the two passes.
  void set_judge(Judge);
  /// Which passes of a step are repeated as graphs, or why none is, for the log.
  std::string repeated_passes() const;

  // After a step on a GPU, parameters may still be on their way from other ranks. Work that is enqueued on
  // stream() after params(), store() or stage() finds them complete.
  ParamTable& params();
  const ParamStore& store();
  const Shards& shards() const { return *shards_; }
  /// The gradients of the last step, summed over the ranks and not clipped. Valid until the next step begins.
  const GradBuffer& grads() const { return *grads_; }
  /// Maximum norm of the gradient from the next step on; 0: no clipping. Initially train.clip_grad.
  void set_clip(double max_norm) { max_norm_ = max_norm; }
  /// The next step changes nothing that a checkpoint holds before this event's work, which reads it.
  void keep_state_until(Event read) { state_read_ = std::move(read); }
  /// Sets whether own_loss() is available after a step.
  void keep_own_loss(bool keep) { keeps_own_loss_ = keep; }
  /// Mean loss of this rank's samples in the last step that was finished; 0 unless this rank has the last
  /// stage.
  double own_loss() const { return own_loss_; }
  /// Executor::stage_seconds() of the last step or evaluation.
  double stage_seconds() const { return executor_->stage_seconds(); }
  Optimizer& optimizer() { return *optimizer_; }
  LossScale& loss_scale() { return loss_scale_; }
  /// The whole model. Only for one rank along the tensor and pipeline axes.
  const Stage& stage();
  Stream& stream() { return stream_; }
  Groups& groups() { return groups_; }
  const RunShape& shape() const { return run_; }
  const RunMemory& memory() const { return memory_; }
  /// set_traced() starts or stops the recording of work. take_trace() returns, for each stream, the spans
  /// that have ended since its last call.
  void set_traced(bool);
  std::vector<TraceLane> take_trace();
  /// With --trace on the CPU: the ops of this rank's compute stream, products by shape, that have run since
  /// recording last started, until it stopped. Otherwise nothing.
  const std::map<std::string, Trace::Entry>& traced_ops();
  /// Checks after at least one step that the memory predicted before the run was right: kInternal unless
  /// every arena has used exactly what memory() says. Where micro-batches may be short, they may have used
  /// less.
  void check_memory() const;

 private:
  /// Reserves the streams' scratch memory, and returns the context of a pass.
  Ctx layer_context(bool training);
  void reserve_scratch();
  PipelineLinks pipeline_links() const;
  View scalar(int which) { return step_scalar(scalars_, which); }
  void make_gradients(const SampleSource&, int64_t consumed, const StepRate&);
  std::vector<double> losses_of_batch();
  void count_labels(LabelCounts&);
  double judge_batch(const SampleSource&, int64_t consumed);
  void update();
  void begin_scalars(const StepRate&);
  void read_on();
  void sum_scalars();
  const std::vector<Step>& plan_of_step();
  Region make_region(Backend&);

  RunShape run_;
  LossScale loss_scale_;
  SpanLog spans_;    // spans of the compute stream
  Trace ops_{true};  // its ops, if they are traced
  std::map<std::string, Trace::Entry> traced_ops_;
  Stream stream_;
  StepResults results_;
  RunMemory memory_;
  Arena links_;  // holds the messages of the communicators, so it outlives them
  Groups groups_;
  SpanLog exchange_spans_;        // of region_'s own stream
  std::optional<Stream> beside_;  // that stream, if it has one
  Region region_;
  ContextRegion context_;
  ParamTable params_;
  std::vector<Stage> stages_;
  std::unique_ptr<ParamStore> store_;
  std::unique_ptr<Shards> shards_;
  std::unique_ptr<GradBuffer> grads_;
  std::unique_ptr<ParamGather> gather_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Executor> executor_;
  Arena scratch_, batch_arena_, scalar_arena_;
  View scalars_;  // [StepScalar::kCount] f64
  std::unique_ptr<Batch> batch_;
  std::unique_ptr<RepeatedPasses> repeated_;
  std::vector<Step> training_plan_, evaluation_plan_;
  Judge judge_;
  Event state_read_;
  int planned_ = 0;  // number of microbatches in training_plan_
  bool evaluated_ = false, keeps_own_loss_ = false;
  double max_norm_, own_loss_ = 0;
};

}  // namespace megalith
