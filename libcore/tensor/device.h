#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "libcore/tensor/view.h"

namespace megalith {

class Backend;
class Trace;

/// Owned memory of a device, freed on destruction. 256-byte aligned. `data` is null for a dry backend's
/// memory.
struct Memory {
  std::unique_ptr<void, std::function<void(void*)>> data;
  size_t bytes = 0;
};

/// A place in a stream's order of work; valid as long as its stream.
struct Event {
  std::shared_ptr<void> native;
};

/// A queue of work of one device. On the CPU work runs at once, in the calling thread (with OpenMP inside);
/// on CUDA it is a stream and a View's contents may be read by the host only after synchronize(). A small
/// handle: copy it freely. The member functions forward to Backend; they are defined in ops/backend.cpp,
/// since tensor/ does not know Backend.
class Stream {
 public:
  explicit Stream(Backend& backend, void* native = nullptr, Trace* trace = nullptr)
      : backend_(&backend), native_(native), trace_(trace) {}

  Backend& backend() const { return *backend_; }
  void* native() const { return native_; }
  Trace* trace() const { return trace_; }

  /// Element-wise copy; converts between fp32, bf16 and fp16. Shapes need only the same number of elements.
  void copy(View to, ConstView from);
  /// Copies between host and device memory (dtypes equal). The host's side may be reused on return.
  void to_host(void* to, ConstView from);
  void from_host(View to, const void* from);
  void fill(View to, double value);
  /// to += from, rounding once.
  void add(View to, ConstView from);

  Event record();
  void wait(const Event&);
  void synchronize();

 private:
  Backend* backend_;
  void* native_;
  Trace* trace_;
};

}  // namespace megalith
