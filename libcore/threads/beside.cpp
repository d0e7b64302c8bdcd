#include "libcore/threads/beside.h"

#include <deque>
#include <system_error>
#include <utility>

namespace megalith {

Beside::Beside(const char* what, std::function<void()> work, Alone alone) : work_(std::move(work)) {
  const auto run = [this] {
    try {
      work_();
    } catch (...) {
      error_ = std::current_exception();
    }
  };
  try {
    thread_.emplace(what, run);
  } catch (const std::system_error&) {
    if (alone == Alone::kFail) throw;
    run();
  }
}

void Beside::wait() {
  if (thread_) thread_->join();
  if (error_) std::rethrow_exception(error_);
}

void run_beside(size_t shares, const std::function<void(size_t)>& work) {
  std::deque<Beside> others;
  std::exception_ptr error;
  const auto keep_error = [&error](const auto& call) {
    try {
      call();
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  };
  for (size_t i = 1; i < shares; ++i) others.emplace_back("a share of the work", [&work, i] { work(i); });
  if (shares > 0) keep_error([&] { work(0); });
  for (Beside& other : others) keep_error([&] { other.wait(); });  // however long the work takes
  if (error) std::rethrow_exception(error);
}

}  // namespace megalith
