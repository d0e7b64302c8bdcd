#include "libcore/ops/cpu/thread_team.h"

#include <algorithm>

#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#include <immintrin.h>
#endif

#include "libcore/ops/cpu/threads.h"

namespace megalith::cpu {
namespace {

constexpr int kSpins = 1000;  // a pause takes some 20 to 40 ns
constexpr uint64_t kField = 0xffff;

void pause() {
#if defined(MEGALITH_SIMD)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

ThreadTeam::ThreadTeam(int threads) : threads_(std::max(1, threads > 0 ? threads : cpu_threads())) {}

ThreadTeam::~ThreadTeam() {
  stop_.store(true);
  wake();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadTeam::start() {
  for (int i = 1; i < threads_; ++i) helpers_.emplace_back([this] { help(); });
}

void ThreadTeam::wake() {
  wakes_.fetch_add(1);
  wakes_.notify_all();
}

bool ThreadTeam::has_blocks() const {
  const uint64_t ticket = ticket_.load();
  return (ticket & kField) < (ticket >> 16 & kField);
}

void ThreadTeam::run(int64_t blocks, Call call, const void* context) {
  const bool helped = threads_ > 1 && blocks > 1 && blocks <= static_cast<int64_t>(kField);
  if (!helped || !mutex_.try_lock()) {
    for (int64_t block = 0; block < blocks; ++block) call(context, block);
    return;
  }
  const std::lock_guard held(mutex_, std::adopt_lock);
  if (helpers_.empty()) start();
  call_.store(call, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  const uint64_t generation = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  ticket_.store(generation << 32 | static_cast<uint64_t>(blocks) << 16);
  if (sleepers_.load() > 0) wake();
  take_blocks();
  for (int spin = 0; done_.load(std::memory_order_acquire) != blocks; ++spin) {
    if (spin < kSpins)
      pause();
    else
      std::this_thread::yield();
  }
}

void ThreadTeam::take_blocks() {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while ((ticket & kField) < (ticket >> 16 & kField)) {
    const Call call = call_.load(std::memory_order_relaxed);
    const void* const context = context_.load(std::memory_order_relaxed);
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire))
      continue;
    call(context, static_cast<int64_t>(ticket & kField));
    done_.fetch_add(1, std::memory_order_release);
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void ThreadTeam::help() {
  while (!stop_.load(std::memory_order_relaxed)) {
    take_blocks();
    int spin = 0;
    while (spin < kSpins && !has_blocks() && !stop_.load(std::memory_order_relaxed)) {
      pause();
      ++spin;
    }
    if (spin < kSpins) continue;
    sleepers_.fetch_add(1);
    const uint32_t seen = wakes_.load();
    if (!has_blocks() && !stop_.load()) wakes_.wait(seen);
    sleepers_.fetch_sub(1);
  }
}

}  // namespace megalith::cpu
