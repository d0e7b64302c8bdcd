#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>

#include "libcore/threads/owned_thread.h"

namespace megalith {

/// Runs work in a thread of its own while the owner does something else. The owner waits for the end of the
/// work.
class Beside {
 public:
  /// What the constructor does if no thread is available. kAtOnce: it does the work itself before it returns.
  /// kFail: it throws std::system_error; needed for work that waits for its owner.
  enum class Alone { kAtOnce, kFail };
  /// `what` names the thread by its work, as OwnedThread's does.
  Beside(const char* what, std::function<void()> work, Alone alone = Alone::kAtOnce);
  ~Beside() = default;  // waits for the end of the work, as OwnedThread does
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  /// Waits until the work is done and rethrows what it threw.
  void wait();

 private:
  std::function<void()> work_;
  std::exception_ptr error_;
  std::optional<OwnedThread> thread_;
};

/// Calls work(i) for each i in [0, shares), all in parallel, work(0) on the caller's thread. Returns when all
/// calls have ended. If any threw, rethrows the error of the lowest i.
void run_beside(size_t shares, const std::function<void(size_t share)>& work);

}  // namespace megalith
