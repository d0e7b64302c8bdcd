#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

#include "libcore/tensor/view.h"

namespace megalith {

class Backend;
class Trace;
class SpanLog;

/// Owned memory of a device, freed on destruction, 256-byte aligned. `data` is null for a dry backend, which
/// needs only the size.
struct Memory {
  std::unique_ptr<void, std::function<void(void*)>> data;
  size_t bytes = 0;
};

/// Waits until a stream gets to a point in its order of work, and returns when that was, on the host's clock.
using AskTime = std::function<std::chrono::steady_clock::time_point()>;

/// A point in a stream's order of work, valid as long as its stream. Without `native` there is nothing to
/// wait for: the work was done at once.
struct Event {
  std::shared_ptr<void> native;
};

/// A queue of work of one device. On the CPU, work of a compute stream runs at once in the calling thread
/// (with OpenMP inside), and work of a queue stream on a worker thread; on CUDA it is a stream. After work on
/// another thread or device, the host may read a View's contents only after synchronize(). A small handle:
/// copy it freely. The member functions forward to Backend; they are defined in ops/backend/backend.cpp,
/// since tensor/ does not depend on ops/.
class Stream {
 public:
  explicit Stream(Backend& backend, void* native = nullptr, Trace* trace = nullptr)
      : backend_(&backend), native_(native), trace_(trace) {}

  Backend& backend() const { return *backend_; }
  void* native() const { return native_; }
  Trace* trace() const { return trace_; }
  /// The log in which StreamSpan records spans of this stream's work, for --trace; null: none. set_spans()
  /// also applies to later copies of this object.
  SpanLog* spans() const { return spans_; }
  void set_spans(SpanLog* spans) { spans_ = spans; }

  /// Element-wise copy; converts between fp32, bf16 and fp16. Shapes need only the same number of elements.
  void copy(View to, ConstView from);
  /// Copies from device to host memory, without conversion, and waits until the copy is done. Throws the
  /// error of earlier host work.
  void to_host(void* to, ConstView from);
  /// Copies from host to device memory, without conversion, in the stream's order. The host's memory has been
  /// read on return and may be reused.
  void from_host(View to, const void* from);
  void fill(View to, double value);
  /// to += from, rounding once.
  void add(View to, ConstView from);

  /// Host work in the stream's order: done at once on a CPU's compute stream, by the worker of a queue
  /// stream, by the driver's thread on CUDA (where it must not call CUDA); dropped by the dry backend.
  /// `give_up` makes work that waits for others return or throw soon; finish() calls it from another thread
  /// when it drops work. An error of work that is not done at once is kept: the stream does nothing more, and
  /// each later enqueue(), wait() and synchronize() on it throws the error.
  void enqueue(std::function<void()> work, std::function<void()> give_up = {});

  Event record();
  /// Makes this stream's later work begin after the event's work. The event may be of any stream of the same
  /// backend. A CPU's compute stream waits inside this call and throws the error that the event's stream
  /// failed with.
  void wait(const Event&);
  void synchronize();
  /// Asks when the stream gets to this point, if its device notes that. Empty on the CPU, where host work can
  /// read the clock.
  AskTime note_time();
  /// Waits until the stream's work is done, so that the memory it uses may be freed. Throws nothing. With
  /// `drop`, a CPU's queue stream waits only for the work in progress, which it tells to give up. It never
  /// does the remaining work, and later calls throw.
  void finish(bool drop) noexcept;

 private:
  Backend* backend_;
  void* native_;
  Trace* trace_;
  SpanLog* spans_ = nullptr;
};

/// Finishes a stream at the end of a scope, so that its work no longer uses the scope's memory; declare it
/// after that memory. If an exception ends the scope, the work is dropped: it may wait for another rank,
/// which waits for this one.
class Drain {
 public:
  explicit Drain(const Stream& stream) : stream_(stream) {}
  ~Drain() { stream_.finish(std::uncaught_exceptions() > exceptions_); }
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

 private:
  Stream stream_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace megalith
