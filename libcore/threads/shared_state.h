#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>

namespace megalith {

/// Guards state that threads share: the lock, waits until the state has changed, and the first error of any
/// thread, which ends all waits. The state itself belongs to the caller.
class SharedState {
 public:
  using Lock = std::unique_lock<std::mutex>;

  Lock lock() const { return Lock(mutex_); }
  /// Waits until `ready()` returns true; it is called with the lock held, at once and after each changed().
  /// Rethrows the error if there is one.
  template <class Ready>
  void wait(Lock& lock, const Ready& ready) {
    changed_.wait(lock, [&] { return error_ || ready(); });
    rethrow(lock);
  }
  /// As wait(), but no longer than `limit`. Returns what ready() returned last.
  template <class Ready>
  bool wait_for(Lock& lock, std::chrono::milliseconds limit, const Ready& ready) {
    const bool in_time = changed_.wait_for(lock, limit, [&] { return error_ || ready(); });
    rethrow(lock);
    return in_time;
  }
  /// As wait_for(), but errors are ignored.
  template <class Ready>
  bool wait_anyway(Lock& lock, std::chrono::milliseconds limit, const Ready& ready) noexcept {
    return changed_.wait_for(lock, limit, ready);
  }
  /// Wakes all waiting threads; they call ready() again.
  void changed() { changed_.notify_all(); }

  bool failed(const Lock&) const { return error_ != nullptr; }
  /// Keeps `error` unless an earlier one is kept; null: no error. The caller must call changed() afterwards.
  void fail(const Lock&, const std::exception_ptr& error) {
    if (!error_) error_ = error;
  }
  void rethrow(const Lock&) const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr error_;  // the first one
};

}  // namespace megalith
