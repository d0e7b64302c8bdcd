#include "tests/emulator/block.h"

#include <algorithm>
#include <string>

#include <cuda_runtime.h>

#include "tests/emulator/controls.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/report.h"

namespace megalith::emulator {

EmulatedBlock& EmulatedBlock::running() {
  static EmulatedBlock& block = *new EmulatedBlock;  // stays: to destroy a thread unwinds its stack
  return block;
}

void EmulatedBlock::run(int threads, size_t shared_bytes, const std::function<void()>& kernel) {
  kernel_ = &kernel;
  threads_ = static_cast<size_t>(threads);
  if (threads_ > kMostThreads) end_with("a block of " + std::to_string(threads) + " threads");
  shared_bytes_ = shared_bytes;
  shared_.assign(shared_bytes / sizeof(Line) + 1, Line{});
  std::memset(shared_.data(), 0xff, shared_bytes);  // NaN exposes reads before the first write
  for (size_t i = 0; i < threads_; ++i) {
    if (!fibers_[i].context) make_thread(fibers_[i], i % kColours * kColour);
    fibers_[i].waits_at = kRunning;
    fibers_[i].gifts = fibers_[i].votes = 0;
  }
  while (step()) {
  }
  controls().counts.special_functions += special_functions_;
  special_functions_ = 0;
}

bool EmulatedBlock::in_shared(const void* address, size_t bytes) const {
  const auto* const begin = reinterpret_cast<const std::byte*>(shared_.data());
  const auto* const at = static_cast<const std::byte*>(address);
  return at >= begin && at + bytes <= begin + shared_bytes_;
}

size_t EmulatedBlock::shared_place(const void* address, size_t bytes) const {
  if (!in_shared(address, bytes)) end_with("an address outside of shared memory");
  return static_cast<size_t>(static_cast<const std::byte*>(address) -
                             reinterpret_cast<const std::byte*>(shared_.data()));
}

void EmulatedBlock::note_access(const void* address, size_t bytes, const void* instruction) {
  if (DeviceMemory::get().owns(address))
    accesses_.add({reinterpret_cast<uintptr_t>(address), bytes, false}, instruction);
  else if (in_shared(address, bytes))
    accesses_.add({shared_place(address, bytes), bytes, true}, instruction);
}

void EmulatedBlock::together(WarpWork work, void* operands) {
  fibers_[current_].work = work;
  fibers_[current_].operands = operands;
  pause(kWarpWork);
}

void EmulatedBlock::work_together(size_t first) {
  void* lanes[kWarp] = {};
  if (threads_ - first < kWarp) end_with("an instruction of a whole warp in a part of one");
  for (size_t i = 0; i < kWarp; ++i) {
    lanes[i] = fibers_[first + i].operands;
    if (fibers_[first + i].work != fibers_[first].work)
      end_with("the threads of a warp work on different things");
  }
  fibers_[first].work(lanes);
}

bool EmulatedBlock::any(bool value) {
  Fiber& self = fibers_[current_];
  const size_t turn = ++self.votes % 2;
  self.vote[turn] = value;
  pause(kVote);
  return std::any_of(fibers_.begin(), fibers_.begin() + static_cast<ptrdiff_t>(threads_),
                     [&](const Fiber& fiber) { return fiber.vote[turn]; });
}

void EmulatedBlock::make_thread(Fiber& fiber, size_t colour) {
  fiber.context =
      Context(std::allocator_arg, boost::context::fixedsize_stack(kStack + colour), [this](Context&& before) {
        *left_ = std::move(before);
        run_kernels();
        return std::move(scheduler_);
      });
}

void EmulatedBlock::run_kernels() {
  const size_t self = current_;
  for (;;) {
    (*kernel_)();
    if (fibers_[self].copies.any()) end_with("a thread ends before its copies to shared memory");
    pause(kEnded);
  }
}

// Inline: the processor predicts each return wrongly whose call was made on another stack.
[[gnu::always_inline]] inline void EmulatedBlock::pass_to(Context& next, Context& self) {
  left_ = &self;
  Context before = std::move(next).resume();
  *left_ = std::move(before);
}

[[gnu::always_inline]] inline void EmulatedBlock::begin_turn() {
  current_ = warp_first_ + in_order(turn_, warp_threads_);
  threadIdx.x = static_cast<unsigned>(current_);
  accesses_.begin_thread(lane());
}

void EmulatedBlock::pause(Place place) {
  Fiber& self = fibers_[current_];
  self.waits_at = place;
  if (++turn_ == warp_threads_) return pass_to(scheduler_, self.context);
  begin_turn();
  pass_to(fibers_[current_].context, self.context);
}

// None of the threads has ended: after a step all threads of a warp wait at the same kind of place, and a
// block of which one has ended is not stepped again.
EmulatedBlock::Place EmulatedBlock::step_warp(size_t first) {
  warp_first_ = first;
  warp_threads_ = std::min(kWarp, threads_ - first);
  turn_ = 0;
  begin_turn();
  pass_to(fibers_[current_].context, scheduler_);
  accesses_.end_warp();
  const Place place = fibers_[first].waits_at;
  for (size_t i = 0; i < warp_threads_; ++i)
    if (fibers_[first + i].waits_at != place)
      end_with("the threads of a warp wait at different places, or some have ended");
  return place;
}

bool EmulatedBlock::step() {
  const size_t warps = (threads_ + kWarp - 1) / kWarp;
  for (size_t i = 0; i < warps; ++i) {
    const size_t first = in_order(i, warps) * kWarp;
    for (Place place = step_warp(first); place == kShuffle || place == kWarpWork; place = step_warp(first))
      if (place == kWarpWork) work_together(first);
  }
  for (size_t i = 1; i < threads_; ++i)
    if (fibers_[i].waits_at != fibers_[0].waits_at)
      end_with("the threads of a block wait at different barriers, or some have ended");
  return fibers_[0].waits_at != kEnded;
}

}  // namespace megalith::emulator
