#pragma once

#include <cstddef>
#include <memory>

#include "libcore/tensor/device.h"

namespace megalith {

/// A second base class of a Backend whose device can copy from and to the host while it computes, as CUDA's
/// can. Found by dynamic_cast. A plugin derives from this class and links no .cpp file of the core for it, so
/// no function may have its body in one.
class LateCopies {
 public:
  virtual ~LateCopies() = default;
  /// Page-locks host memory until the result is destroyed: copies to it then run beside other work. Null if
  /// the system refuses: copies then hold up the caller.
  virtual std::shared_ptr<void> lock_pages(void* memory, size_t bytes) = 0;
  /// Enqueues a copy to host memory, which must not be read or freed before the stream's work is done.
  virtual void copy_out(Stream& stream, void* to, ConstView from) = 0;
  /// Enqueues a copy from memory that lock_pages() has locked, without conversion. The memory must not be
  /// changed or freed before the copy is done.
  virtual void copy_in(Stream& stream, View to, const void* from) = 0;
  /// Waits until the work before an event of the stream is done, whatever the stream does after it. Throws
  /// kDevice.
  virtual void await(Stream& stream, const Event&) = 0;
};

}  // namespace megalith
