#include "tests/emulator/block.h"

#include <algorithm>

#include <cuda_runtime.h>

#include "tests/emulator/report.h"

namespace megalith::emulator {

EmulatedBlock& EmulatedBlock::running() {
  static EmulatedBlock block;
  return block;
}

void EmulatedBlock::run(int threads, size_t shared_bytes, const std::function<void()>& kernel) {
  kernel_ = &kernel;
  if (fibers_.empty()) fibers_.resize(static_cast<size_t>(threads));
  if (fibers_.size() != static_cast<size_t>(threads)) end_with("blocks of different sizes");
  shared_.assign(shared_bytes / sizeof(Line) + 1, Line{});
  std::memset(shared_.data(), 0xff, shared_bytes);  // NaN exposes reads before the first write
  for (Fiber& fiber : fibers_) {
    if (!fiber.stack) make_context(fiber);
    fiber.waits_at = kRunning;
  }
  while (step()) {
  }
}

bool EmulatedBlock::any(bool value) {
  Fiber& self = fibers_[current_];
  const size_t turn = ++self.votes % 2;
  self.vote[turn] = value;
  pause(kVote);
  return std::any_of(fibers_.begin(), fibers_.end(), [&](const Fiber& fiber) { return fiber.vote[turn]; });
}

void EmulatedBlock::make_context(Fiber& fiber) {
  fiber.stack = std::make_unique<unsigned char[]>(kStack);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStack;
  fiber.context.uc_link = nullptr;
  makecontext(
      &fiber.context, [] { running().enter(); }, 0);
}

void EmulatedBlock::enter() {
  const size_t self = current_;
  for (;;) {
    (*kernel_)();
    fibers_[self].waits_at = kEnded;
    if (_setjmp(fibers_[self].place) == 0) _longjmp(scheduler_place_, 1);
  }
}

void EmulatedBlock::resume(Fiber& fiber) {
  if (_setjmp(scheduler_place_) != 0) return;
  if (fiber.started) _longjmp(fiber.place, 1);
  fiber.started = true;
  setcontext(&fiber.context);
}

void EmulatedBlock::pause(Place place) {
  Fiber& self = fibers_[current_];
  self.waits_at = place;
  if (_setjmp(self.place) == 0) _longjmp(scheduler_place_, 1);
}

EmulatedBlock::Place EmulatedBlock::step_warp(size_t first) {
  const size_t threads = std::min(kWarp, fibers_.size() - first);
  for (size_t i = 0; i < threads; ++i) {
    current_ = first + in_order(i, threads);
    threadIdx.x = static_cast<unsigned>(current_);
    if (fibers_[current_].waits_at != kEnded) resume(fibers_[current_]);
  }
  const Place place = fibers_[first].waits_at;
  for (size_t i = 0; i < threads; ++i)
    if (fibers_[first + i].waits_at != place)
      end_with("the threads of a warp wait at different places, or some have ended");
  return place;
}

bool EmulatedBlock::step() {
  const size_t warps = (fibers_.size() + kWarp - 1) / kWarp;
  for (size_t i = 0; i < warps; ++i)
    while (step_warp(in_order(i, warps) * kWarp) == kShuffle) {
    }
  for (const Fiber& fiber : fibers_)
    if (fiber.waits_at != fibers_[0].waits_at)
      end_with("the threads of a block wait at different barriers, or some have ended");
  return fibers_[0].waits_at != kEnded;
}

}  // namespace megalith::emulator
