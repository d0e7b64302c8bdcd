#include "libcore/parallel/together.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <vector>

#include "libcore/parallel/exchange.h"
#include "libcore/threads/beside.h"

namespace megalith {
namespace {

enum class WorkState { kWorks, kDone };

/// Tells the other ranks that this rank is alive while it works.
class SignsOfLife {
 public:
  SignsOfLife(Communicator& ranks, std::chrono::milliseconds peer_timeout)
      : ranks_(ranks),
        round_(between_signs_of_life(peer_timeout)),
        thread_(
            "the thread that tells the other ranks of this one", [this] { give(); }, Beside::Alone::kFail) {}

  /// Throws when another rank failed.
  void check() const {
    if (lost_) std::rethrow_exception(error_);
  }
  /// Waits until all ranks have done their work; throws if one failed.
  void finish() {
    end(WorkState::kDone);
    check();
  }
  /// Ends this rank's signs of life.
  void give_up() { end(std::nullopt); }

 private:
  void end(std::optional<WorkState> state) {
    {
      const std::lock_guard lock(mutex_);
      state_ = state;
      changed_.notify_all();
    }
    thread_.wait();
  }

  void give() {
    try {
      while (true) {
        const std::optional<WorkState> mine = next();
        if (!mine) return;
        const std::vector<WorkState> all = exchange_values(ranks_, *mine);
        if (std::all_of(all.begin(), all.end(), [](WorkState state) { return state == WorkState::kDone; }))
          return;
      }
    } catch (...) {
      error_ = std::current_exception();
      lost_ = true;
    }
  }
  std::optional<WorkState> next() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, round_, [this] { return state_ != WorkState::kWorks; });
    return state_;
  }

  Communicator& ranks_;
  const std::chrono::milliseconds round_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<WorkState> state_ = WorkState::kWorks;  // nothing: the rank has given up
  std::exception_ptr error_;                            // written before lost_
  std::atomic<bool> lost_{false};
  Beside thread_;
};

}  // namespace

std::chrono::milliseconds between_signs_of_life(std::chrono::milliseconds peer_timeout) {
  constexpr std::chrono::milliseconds kMax(1000);
  return std::min(kMax, peer_timeout / 4);
}

void do_together(Communicator& ranks, std::chrono::milliseconds peer_timeout, const TogetherWork& work) {
  if (ranks.size() == 1) return work([] {});
  SignsOfLife signs(ranks, peer_timeout);
  try {
    work([&signs] { signs.check(); });
  } catch (...) {
    signs.give_up();
    throw;
  }
  signs.finish();
}

}  // namespace megalith
