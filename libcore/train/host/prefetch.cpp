#include "libcore/train/host/prefetch.h"

#include <utility>

#include "libcore/base/error.h"

namespace megalith {

void Prefetch::start(Job job) {
  cancel();
  if (!thread_) thread_.emplace("the thread that reads the next samples");
  thread_->give([this, job = std::move(job)] { run(job); }, [this] { cancelled_ = true; });
  started_ = true;
}

void Prefetch::finish() {
  if (!started_) fail(ErrorKind::kInternal, "prefetch: no job is started");
  if (const auto waiting = thread_->take_back())
    (*waiting)();
  else
    thread_->wait_for_jobs();
  started_ = false;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Prefetch::cancel() {
  if (!started_) return;
  cancelled_ = true;
  if (!thread_->take_back()) thread_->wait_for_jobs();
  cancelled_ = false;
  started_ = false;
  error_ = nullptr;
}

/// Keeps an error of the job for finish() to throw, so that the thread can take the next job.
void Prefetch::run(const Job& job) {
  try {
    job(cancelled_);
  } catch (...) {
    error_ = std::current_exception();
  }
}

}  // namespace megalith
