#include "libcore/train/executor.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/ops/backend.h"

namespace megalith {
namespace {

size_t bytes_of(Shape shape, DType dtype) {
  constexpr size_t kArenaAlign = 256;
  const size_t bytes = static_cast<size_t>(shape.elements()) * size_of(dtype);
  return (bytes + kArenaAlign - 1) / kArenaAlign * kArenaAlign;
}

}  // namespace

size_t Executor::boundary_bytes(const PipelinePlace& place, const ExecutorSize& size) {
  // One input for each tape, which stays until its backward pass, and one gradient.
  return place.ranks == 1 ? 0 : static_cast<size_t>(size.tapes + 1) * bytes_of(size.boundary, size.dtype);
}

Executor::Executor(std::span<const Stage> chunks, const PipelinePlace& place, const ExecutorSize& size,
                   Backend& backend)
    : chunks_(chunks),
      place_(place),
      boundary_(make_arena(backend, "pipeline links", boundary_bytes(place, size))) {
  if (place.ranks == 1 && chunks.size() > 1)
    fail(ErrorKind::kInternal, "executor: ", chunks.size(), " chunks on one pipeline rank");
  for (int i = 0; i < size.tapes; ++i) {
    slots_.push_back(std::make_unique<Slot>(make_arena(backend, concat("tape ", i), size.tape)));
    if (place.ranks > 1) slots_.back()->in = boundary_.make(size.dtype, size.boundary, "stage input");
  }
  if (place.ranks > 1) gradient_ = boundary_.make(size.dtype, size.boundary, "stage gradient");
}

void Executor::run(const Ctx& ctx, std::span<const Step> plan, std::span<const Microbatch> microbatches,
                   View loss) {
  for (const Step& step : plan) {
    const Microbatch& microbatch = microbatches[static_cast<size_t>(step.microbatch)];
    if (step.kind == Step::kForward)
      forward(ctx, step, microbatch, loss);
    else
      backward(ctx, step, microbatch);
  }
}

void Executor::forward(const Ctx& ctx, const Step& step, const Microbatch& microbatch, View loss) {
  Slot& slot = free_slot(step);
  const int last = static_cast<int>(chunks_.size()) * place_.ranks - 1;
  if (depth(step) > 0)
    place_.forward->recv(ctx.compute, slot.in, (place_.rank + place_.ranks - 1) % place_.ranks);
  const View out = chunks_[static_cast<size_t>(step.chunk)].forward(
      ctx, microbatch, depth(step) > 0 ? slot.in : View{}, slot.tape);
  if (depth(step) < last)
    place_.forward->send(ctx.compute, out, (place_.rank + 1) % place_.ranks);
  else
    megalith::run(ctx.compute,
                  ScaledSum{.out = loss, .x = out, .scale = static_cast<double>(microbatch.grad_scale)});
  if (!ctx.training) release(slot);
}

void Executor::backward(const Ctx& ctx, const Step& step, const Microbatch& microbatch) {
  Slot& slot = slot_of(step);
  const int last = static_cast<int>(chunks_.size()) * place_.ranks - 1;
  if (depth(step) < last) place_.backward->recv(ctx.compute, gradient_, (place_.rank + 1) % place_.ranks);
  const View out = chunks_[static_cast<size_t>(step.chunk)].backward(
      ctx, microbatch, depth(step) < last ? gradient_ : View{}, slot.tape);
  if (depth(step) > 0)
    place_.backward->send(ctx.compute, out, (place_.rank + place_.ranks - 1) % place_.ranks);
  release(slot);
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
