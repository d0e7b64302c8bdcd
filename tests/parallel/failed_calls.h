#pragma once

#include <atomic>
#include <functional>

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
      failed_.notify_all();
      throw;
    }
  }
  void await(int failed) const {
    for (int seen = failed_; seen < failed; seen = failed_) failed_.wait(seen);
  }

 private:
  std::atomic<int> failed_ = 0;
};

}  // namespace megalith
