#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

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

/// The seconds that work took: a number, or a question to a device whose work may not be done yet.
struct WorkTime {
  double seconds = 0;
  std::function<double()> ask = {};  // waits for the work and returns its seconds; empty: `seconds` are known
};

/// Records for each op name: calls, cost, and the time of the op's work on its device (Backend::timed).
/// Products of different shapes can have entries of their own.
class Trace {
 public:
  struct Entry {
    int64_t calls = 0;
    Cost cost;
    double seconds = 0;
  };
  explicit Trace(bool by_shape = false) : by_shape_(by_shape) {}
  bool by_shape() const { return by_shape_; }
  void add(const std::string& name, const Cost& cost, WorkTime time) {
    Entry& entry = entries_[name];
    ++entry.calls;
    entry.cost += cost;
    entry.seconds += time.seconds;
    if (time.ask) asked_later_.emplace_back(&entry, std::move(time.ask));
  }
  /// Waits for recorded work of a device that is not done.
  const std::map<std::string, Entry>& entries() {
    for (const auto& [entry, ask] : asked_later_) entry->seconds += ask();
    asked_later_.clear();
    return entries_;
  }
  void clear() {
    asked_later_.clear();
    entries_.clear();
  }

 private:
  bool by_shape_;
  std::map<std::string, Entry> entries_;
  std::vector<std::pair<Entry*, std::function<double()>>> asked_later_;
};

/// For check(): throws kInternal "OP: RULE, got A and B" unless `ok`.
template <class A, class B>
void require(bool ok, const char* op, const char* rule, const A& a, const B& b) {
  if (!ok) fail(ErrorKind::kInternal, op, ": wanted ", rule, ", got ", a, " and ", b);
}

}  // namespace megalith
