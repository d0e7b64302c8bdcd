#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/threads/serial_executor.h"

namespace megalith::cpu {

/// The object behind a queue stream's native handle: one thread, which opens no OpenMP region, does the
/// queue's work in order. Any number of threads may put work and wait.
class Queue {
 public:
  /// Identifies the work put so far, jobs 1 to `number`, so that wait() can wait for it.
  struct Ticket {
    Queue* queue;
    uint64_t number;
  };

  Queue() {
    put([] { set_cpu_threads(1); });
  }
  /// Completes the remaining work; while an exception unwinds the stack, drops that work instead, as Drain
  /// does.
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
  SerialExecutor thread_{"the thread of a stream"};
};

}  // namespace megalith::cpu
