#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace megalith::cpu {

/// Threads for very short jobs: generating a token takes a hundred products of some ten microseconds each.
/// Unlike with fork and join, the caller does not wait for helpers that have not begun: it takes blocks
/// itself until none are left, so a helper that sleeps or is descheduled costs only its help. Helpers spin
/// for some ten microseconds after a job, then sleep. Compared with OpenMP's fork and join (GPT-2 of 101M, 2
/// threads, 12 alternating pairs, bf16 / int8): 1.02 / 1.03 times the tokens per second if OpenMP's threads
/// spin and nothing else runs, 1.23 / 1.73 times if they sleep, and 1.85 / 2.33 times, at half the processor
/// time, if another program occupies one of the two cores.
class ThreadTeam {
 public:
  /// `threads`: the number of threads, including the caller; 0: cpu_threads(). Helpers start with the first
  /// job.
  explicit ThreadTeam(int threads = 0);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  /// Calls work(block) for each block in [0, blocks), like for_each_block(); `work` must not throw. Several
  /// threads may call this at once, but only one of them gets help.
  template <class Work>
  void for_each_block(int64_t blocks, const Work& work) {
    run(
        blocks, [](const void* context, int64_t block) { (*static_cast<const Work*>(context))(block); },
        &work);
  }

 private:
  using Call = void (*)(const void* context, int64_t block);
  void run(int64_t blocks, Call, const void* context);
  void start();
  void help();
  void take_blocks();
  bool has_blocks() const;
  void wake();

  int threads_;
  std::mutex mutex_;  // held by the caller that gets help
  std::vector<std::thread> helpers_;
  /// Holds the number of the job (32 bits), the number of its blocks (16) and its next block (16). A helper
  /// reads call_ and context_, then takes a block by a compare-and-swap that increments the next block. The
  /// compare-and-swap fails if the job has changed, so call_ and context_ belong to the block's job.
  alignas(64) std::atomic<uint64_t> ticket_{0};
  std::atomic<Call> call_{nullptr};
  std::atomic<const void*> context_{nullptr};
  alignas(64) std::atomic<int64_t> done_{0};
  alignas(64) std::atomic<uint32_t> wakes_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace megalith::cpu
