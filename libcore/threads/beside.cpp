#include "libcore/threads/beside.h"

#include <deque>
#include <system_error>
#include <utility>

namespace megalith {

Beside::Beside(std::function<void()> work, Alone alone) : work_(std::move(work)) {
  const auto run = [this] {
    try {
      work_();
    } catch (...) {
      error_ = std::current_exception();
    }
  };
  try {
    thread_ = std::thread(run);
  } catch (const std::system_error&) {
    if (alone == Alone::kFail) throw;
    run();
  }
}

Beside::~Beside() {
  if (thread_.joinable()) thread_.join();
}

void Beside::wait() {
  if (thread_.joinable()) thread_.join();
  if (error_) std::rethrow_exception(error_);
}

void run_beside(size_t shares, const std::function<void(size_t)>& work) {
  std::deque<Beside> others;
  for (size_t i = 1; i < shares; ++i) others.emplace_back([&work, i] { work(i); });
  if (shares > 0) work(0);
  for (Beside& other : others) other.wait();
}

}  // namespace megalith
