#include "libcore/io/files/io_thread.h"

#include <utility>

namespace megalith {

IoThread::IoThread(std::function<void()> failed) : failed_(std::move(failed)), thread_([this] { serve(); }) {}

IoThread::~IoThread() {
  {
    const Lock held = lock();
    ended_ = true;
  }
  work_.notify_one();
  thread_.join();
}

void IoThread::give(Job job) {
  {
    const Lock held = lock();
    if (error_) return;  // wait() tells of it
    jobs_.push_back(std::move(job));
  }
  work_.notify_one();
}

void IoThread::wait_for_jobs() {
  Lock held = lock();
  wait(held, [this] { return jobs_.empty(); });
}

void IoThread::serve() {
  Lock held = lock();
  while (true) {
    work_.wait(held, [this] { return ended_ || !jobs_.empty(); });
    if (ended_) return;
    const Job& job = jobs_.front();  // its place in the deque's memory stays
    held.unlock();
    std::exception_ptr error;
    try {
      job.work();
    } catch (...) {
      error = std::current_exception();
    }
    held.lock();
    if (error) {
      error_ = error;
      jobs_.clear();
      if (failed_) failed_();
    } else {
      if (job.done) job.done();
      jobs_.pop_front();
    }
    changed_.notify_all();
  }
}

}  // namespace megalith
