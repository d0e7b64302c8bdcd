#pragma once

#include <cstddef>
#include <vector>

namespace megalith::emulator {

/// One thread's asynchronous copies to shared memory (cp.async), which end as late as they may: when the
/// thread waits for them. Until then the destination is full of NaN.
class AsyncCopies {
 public:
  /// `from` null: fills with zeros.
  void start(void* to, const void* from, size_t bytes);
  /// Ends a group: the copies since the last call.
  void commit() { ++groups_; }
  /// Waits for all groups but the last `left`. Copies of a group that has not ended continue.
  void wait(size_t left);
  bool any() const { return !copies_.empty(); }

 private:
  struct Copy {
    void* to;
    const void* from;
    size_t bytes, group;
  };
  std::vector<Copy> copies_;
  size_t groups_ = 0;
};

}  // namespace megalith::emulator
