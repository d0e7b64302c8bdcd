#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <thread>

namespace megalith {

/// Work that a thread of its own does while the owner does something else and waits for it at the end.
class Beside {
 public:
  /// If no thread is available: do the work at once, before the constructor returns; or, for work that would
  /// wait for its owner, throw std::system_error.
  enum class Alone { kAtOnce, kFail };
  explicit Beside(std::function<void()> work, Alone alone = Alone::kAtOnce);
  ~Beside();  // waits
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  /// Waits until the work is done and rethrows what it threw.
  void wait();

 private:
  std::function<void()> work_;
  std::exception_ptr error_;
  std::thread thread_;
};

/// Calls work(i) for each i in [0, shares), all in parallel, the first on this thread. Returns when all have
/// ended; rethrows the error of the first share that has one.
void run_beside(size_t shares, const std::function<void(size_t share)>& work);

}  // namespace megalith
