#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

/// A stream's work that has not run yet. An item returns false while it waits for an event.
struct EmulatedStream {
  std::deque<std::function<bool()>> work;
};

namespace megalith::emulator {

/// Runs the work of all streams as late as a device may: only when the host waits for it, and in a random
/// order of those that events allow (Controls::order seeds it). Ends the process if streams wait for each
/// other, or if a host function calls the device. nullptr is the default stream.
class Streams {
 public:
  static Streams& get();

  void add(EmulatedStream* stream);
  void remove(EmulatedStream* stream);  // after its work has run
  void enqueue(EmulatedStream* stream, std::function<bool()> work);
  void enqueue_host_function(EmulatedStream* stream, const std::function<void()>& work);
  void finish(EmulatedStream* stream);
  void finish_all();
  /// Ends the process if a host function calls this.
  void require_no_host_function() const;

 private:
  Streams() = default;
  bool run_some(const std::vector<EmulatedStream*>& busy);
  std::vector<EmulatedStream*> busy_streams() const;

  std::recursive_mutex
      mutex_;  // guards the rest; held while work runs, so device code never runs in parallel
  EmulatedStream default_;
  std::vector<EmulatedStream*> streams_{&default_};  // in the order in which they were made
  std::mt19937 random_;
  unsigned seed_ = std::mt19937::default_seed;
};

}  // namespace megalith::emulator
