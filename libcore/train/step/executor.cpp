#include "libcore/train/step/executor.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/tensor/span_log.h"

namespace megalith {

// Bytes for three things: the input of each tape, which is needed until its backward pass; one gradient; and
// the messages in transit on each of the two links.
size_t Executor::link_bytes(const PipelineLinks& pipeline, const ExecutorSize& size) {
  if (pipeline.ranks == 1) return 0;
  const int boundaries = size.tapes + 1 + 2 * size.messages;
  return static_cast<size_t>(boundaries) * Arena::bytes_of(size.dtype, size.boundary);
}

Executor::Executor(std::span<const Stage> chunks, const PipelineLinks& pipeline, const ExecutorSize& size,
                   Arena& links, Backend& backend)
    : chunks_(chunks), pipeline_(pipeline) {
  if (pipeline.ranks == 1 && chunks.size() > 1)
    fail(ErrorKind::kInternal, "executor: ", chunks.size(), " chunks on one pipeline rank");
  for (int i = 0; i < size.tapes; ++i) {
    slots_.push_back(std::make_unique<Slot>(make_arena(backend, concat("tape ", i), size.tape)));
    if (pipeline.ranks > 1) slots_.back()->in = links.make(size.dtype, size.boundary, "stage input");
  }
  if (pipeline.ranks == 1) return;
  gradient_ = links.make(size.dtype, size.boundary, "stage gradient");
  // The size of a message is rounded up as an arena does it, so that each message is aligned.
  const int64_t message = static_cast<int64_t>(Arena::bytes_of(size.dtype, size.boundary));
  for (Communicator* const link : {pipeline.forward, pipeline.backward})
    link->set_send_slots(links.make(DType::kU8, {size.messages, message}, "messages"), size.messages);
}

struct Executor::Run {
  Ctx ctx;
  View loss;
  GradBuffer* grads;
  std::vector<size_t> to_come;
};

void Executor::run(const Ctx& ctx, std::span<const Step> plan, std::span<const Microbatch> microbatches,
                   View loss, GradBuffer* grads) {
  stage_seconds_ = 0;
  Run run{.ctx = ctx, .loss = loss, .grads = grads, .to_come = std::vector<size_t>(chunks_.size(), 0)};
  for (const Step& step : plan) run.to_come[static_cast<size_t>(step.chunk)] += step.kind == Step::kBackward;
  run.ctx.grads = grads;
  for (size_t i = 0; i < plan.size(); ++i)
    if (repeats(run, plan.subspan(i)))
      ++i;
    else
      do_step(run, plan[i], microbatches[static_cast<size_t>(plan[i].microbatch)]);
}

void Executor::do_step(Run& run, const Step& step, const Microbatch& microbatch) {
  const StreamSpan span(run.ctx.compute, step);
  if (step.kind == Step::kForward) return forward(run.ctx, step, microbatch, run.loss);
  size_t& to_come = run.to_come[static_cast<size_t>(step.chunk)];
  if (run.grads) run.grads->begin_backward(--to_come == 0);
  backward(run.ctx, step, microbatch);
}

/// Lets the repeater do the first two steps of the plan if they are both passes of a micro-batch. Returns
/// whether it did.
bool Executor::repeats(Run& run, std::span<const Step> plan) {
  if (!repeater_ || listener_ || pipeline_.ranks > 1 || plan.size() < 2) return false;
  const Step &forward = plan[0], &backward = plan[1];
  if (forward.kind != Step::kForward || backward.kind != Step::kBackward ||
      forward.microbatch != backward.microbatch)
    return false;
  size_t& to_come = run.to_come.front();
  const size_t before = to_come;
  const auto passes = [&](const Microbatch& microbatch) {
    to_come = before;
    try {
      do_step(run, forward, microbatch);
      do_step(run, backward, microbatch);
    } catch (...) {
      for (const auto& slot : slots_) release(*slot);  // the passes may be enqueued again
      throw;
    }
  };
  const auto begin = std::chrono::steady_clock::now();
  const double seconds = stage_seconds_;
  if (!repeater_->run(run.ctx, {.microbatch = forward.microbatch, .last = before == 1}, passes)) return false;
  stage_seconds_ = seconds + seconds_since(begin);
  to_come = before - 1;
  return true;
}

void Executor::receive(const Ctx& ctx, Communicator& link, View to, int peer) {
  const StreamSpan span(ctx.compute, "receive from stage ", peer);
  link.recv(ctx.compute, to, peer);
}

void Executor::send(const Ctx& ctx, Communicator& link, ConstView from, int peer) {
  const StreamSpan span(ctx.compute, "send to stage ", peer);
  link.send(ctx.compute, from, peer);
}

void Executor::forward(const Ctx& ctx, const Step& step, const Microbatch& microbatch, View loss) {
  Slot& slot = free_slot(step);
  const View in = depth(step) > 0 ? boundary(ctx, slot.in, microbatch) : View{};
  if (in) receive(ctx, *pipeline_.forward, in, (pipeline_.rank + pipeline_.ranks - 1) % pipeline_.ranks);
  const auto begin = std::chrono::steady_clock::now();
  const View out = chunks_[static_cast<size_t>(step.chunk)].forward(ctx, microbatch, in, slot.tape);
  stage_seconds_ += seconds_since(begin);
  if (depth(step) < last_depth())
    send(ctx, *pipeline_.forward, out, (pipeline_.rank + 1) % pipeline_.ranks);
  else if (listener_)
    listener_(step.microbatch, out);
  else
    megalith::run(
        ctx.compute,
        ScaledSum{
            .out = loss, .x = out, .scale = microbatch.grad_scale, .scale_at = microbatch.grad_scale_at});
  if (!ctx.training) release(slot);
}

void Executor::backward(const Ctx& ctx, const Step& step, const Microbatch& microbatch) {
  Slot& slot = slot_of(step);
  const View gradient = depth(step) < last_depth() ? boundary(ctx, gradient_, microbatch) : View{};
  if (gradient) receive(ctx, *pipeline_.backward, gradient, (pipeline_.rank + 1) % pipeline_.ranks);
  const auto begin = std::chrono::steady_clock::now();
  const View out = chunks_[static_cast<size_t>(step.chunk)].backward(ctx, microbatch, gradient, slot.tape);
  stage_seconds_ += seconds_since(begin);
  if (depth(step) > 0)
    send(ctx, *pipeline_.backward, out, (pipeline_.rank + pipeline_.ranks - 1) % pipeline_.ranks);
  release(slot);
}

View Executor::boundary(const Ctx& ctx, const View& whole, const Microbatch& microbatch) {
  return whole.rows(0, ctx.tp.rows_outside(microbatch.tokens.shape[0]));
}

Executor::Slot& Executor::free_slot(const Step& step) {
  for (const auto& slot : slots_) {
    if (slot->chunk != kFree) continue;
    slot->chunk = step.chunk;
    slot->microbatch = step.microbatch;
    return *slot;
  }
  fail(ErrorKind::kInternal, "executor: no tape free for ", step, ", all ", slots_.size(),
       " wait for their backward pass");
}

Executor::Slot& Executor::slot_of(const Step& step) {
  for (const auto& slot : slots_)
    if (slot->chunk == step.chunk && slot->microbatch == step.microbatch) return *slot;
  fail(ErrorKind::kInternal, "executor: ", step, " comes before its forward pass");
}

void Executor::release(Slot& slot) {
  slot.tape.clear();
  slot.chunk = kFree;
}

size_t Executor::tape_peak() const {
  size_t peak = 0;
  for (const auto& slot : slots_) peak = std::max(peak, slot->tape.arena.peak());
  return peak;
}

}  // namespace megalith
