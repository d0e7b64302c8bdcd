#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <thread>

namespace megalith {

/// Work beside what its owner does, who waits for it at the end: on a thread of its own.
class Beside {
 public:
  /// Where no thread can be had, the work is done at once, before this returns; or, of work that would wait
  /// for its owner, std::system_error is thrown.
  enum class Alone { kAtOnce, kFail };
  explicit Beside(std::function<void()> work, Alone alone = Alone::kAtOnce);
  ~Beside();  // waits
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  /// Waits until the work is done, and rethrows what it threw.
  void wait();

 private:
  std::function<void()> work_;
  std::exception_ptr error_;
  std::thread thread_;
};

/// Calls work(i) for each i in [0, shares), all beside each other, the first on this thread. Returns when all
/// have ended; rethrows what the first of them threw.
void run_beside(size_t shares, const std::function<void(size_t share)>& work);

}  // namespace megalith
