#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "libcore/base/error.h"

namespace megalith {

/// Calls of ranks that are threads, for a rank that comes only when those of the others have failed.
class FailedCalls {
 public:
  void make(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error&) {
      ++failed_;
      throw;
    }
  }
  void await(int failed) const {
    while (failed_ < failed) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  std::atomic<int> failed_ = 0;
};

}  // namespace megalith
