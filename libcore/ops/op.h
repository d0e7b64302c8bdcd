#pragma once

#include <chrono>
#include <map>
#include <string>

#include "libcore/base/error.h"
#include "libcore/tensor/device.h"

namespace megalith {

/// The cost of an op: its floating-point operations, and the least number of bytes that it must read and
/// write.
struct Cost {
  double flops = 0, bytes = 0;
  Cost& operator+=(const Cost& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

/// Records for each op name: calls, cost, and host time between enqueue and return (on the CPU: the op's run
/// time).
class Trace {
 public:
  struct Entry {
    int64_t calls = 0;
    Cost cost;
    double seconds = 0;
  };
  void add(const char* name, const Cost& cost, double seconds) {
    Entry& entry = entries_[name];
    ++entry.calls;
    entry.cost += cost;
    entry.seconds += seconds;
  }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  void clear() { entries_.clear(); }

 private:
  std::map<std::string, Entry> entries_;
};

/// For check(): throws kInternal "OP: RULE, got A and B" unless `ok`.
template <class A, class B>
void require(bool ok, const char* op, const char* rule, const A& a, const B& b) {
  if (!ok) fail(ErrorKind::kInternal, op, ": wanted ", rule, ", got ", a, " and ", b);
}

}  // namespace megalith
