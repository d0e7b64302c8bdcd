#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/threads/serial_executor.h"

namespace megalith::cpu {

/// What a queue stream's native handle points to: work done in order by one thread, which opens no OpenMP
/// region. Any number of threads may put work and wait.
class Queue {
 public:
  /// For wait(): identifies the work put so far, jobs 1 to `number`.
  struct Ticket {
    Queue* queue;
    uint64_t number;
  };

  Queue() {
    put([] { set_cpu_threads(1); });
  }
  /// Completes the remaining work; if an exception ends the owner, drops it, as Drain does.
  ~Queue() { finish(std::uncaught_exceptions() > 0); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// See Stream::enqueue.
  void put(std::function<void()> work, std::function<void()> give_up = {}) {
    thread_.give(std::move(work), std::move(give_up));
  }
  Ticket ticket() { return {this, thread_.given()}; }
  void wait(const Ticket& ticket) { thread_.wait_for_job(ticket.number); }
  /// See Stream::finish.
  void finish(bool drop) noexcept {
    if (drop)
      thread_.cancel(std::make_exception_ptr(Error(
          ErrorKind::kInternal, "cpu: a queue stream dropped its work, since an error ended its owner")));
    thread_.drain();
  }

 private:
  SerialExecutor thread_;
};

}  // namespace megalith::cpu
