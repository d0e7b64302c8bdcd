#pragma once

#include <functional>
#include <future>
#include <thread>

namespace megalith {

/// A thread whose owner outlives it.
class OwnedThread {
 public:
  /// `what` names the thread in a message and must stay valid. `body` must not throw. Throws
  /// std::system_error if the system has no more threads.
  OwnedThread(const char* what, std::function<void()> body);
  /// Waits for the end of the thread unless join() has. If that takes longer than last_wait_limit(), the
  /// process ends, since the thread may use its owner's memory.
  ~OwnedThread();
  OwnedThread(const OwnedThread&) = delete;
  OwnedThread& operator=(const OwnedThread&) = delete;

  /// Waits without a limit for the end of the thread; a second call does nothing.
  void join();

 private:
  const char* what_;
  std::promise<void> end_;
  std::thread thread_;
};

}  // namespace megalith
