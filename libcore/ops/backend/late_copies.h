#pragma once

#include <cstddef>
#include <memory>

#include "libcore/tensor/device.h"

namespace megalith {

/// What a Backend is, too, if its device can copy to the host while it computes: CUDA's. A plugin has this
/// class, so no function of it may have its body in a .cpp file.
class LateCopies {
 public:
  virtual ~LateCopies() = default;
  /// Keeps pages of host memory where they are until the result is destroyed, as copies to them need in order
  /// to run beside other work. Null if the system refuses that: copies then hold up the caller.
  virtual std::shared_ptr<void> lock_pages(void* memory, size_t bytes) = 0;
  /// Enqueues a copy to host memory, which must not be read or freed before the stream's work is done.
  virtual void copy_out(Stream& stream, void* to, ConstView from) = 0;
};

}  // namespace megalith
