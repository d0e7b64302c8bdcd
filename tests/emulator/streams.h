#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

namespace megalith::emulator {
class Capture;
}
struct EmulatedGraph;

/// A stream: its work that has not run yet, and its clock. An item returns false while it waits: for an
/// event, or for the device of another rank (`outside`), whose host is another thread or process. `begin`, if
/// it is there, makes `run` when captured work is launched, each time anew, on the thread that launches it.
/// The clock advances by `time` times Controls::work_seconds with each item, and to the time of an event when
/// the stream waits for it, so it does not depend on the order of work.
struct EmulatedStream {
  struct Item {
    std::function<bool()> run;
    double time;
    bool outside = false;
    std::function<std::function<bool()>()> begin = {};
  };
  int device = 0;
  std::deque<Item> work = {};
  double clock = 0;                                                // seconds
  std::shared_ptr<megalith::emulator::Capture> capture = nullptr;  // which gets its work; null: none
};

namespace megalith::emulator {

/// The device that the calling thread chose (cudaSetDevice), at first 0.
int& chosen_device();

/// Runs the work of all streams as late as a device may: only when the host waits for it, and in a random
/// order of those that events allow (Controls::order seeds it). Ends the process if streams wait for each
/// other, or if a host function calls the device. nullptr is the default stream of the chosen device.
class Streams {
 public:
  static Streams& get();

  void add(EmulatedStream* stream);
  void remove(EmulatedStream* stream);  // after its work has run
  int device_of(EmulatedStream* stream) { return stream_of(stream).device; }
  /// Ends the process unless the stream is of the chosen device, as it must be to launch a kernel on it.
  void require_chosen(EmulatedStream* stream);
  /// Work of the device, which takes `time` times Controls::work_seconds.
  void enqueue(EmulatedStream* stream, const std::function<void()>& work, double time = 1);
  /// An event's record, or a wait for it: `run` gets the stream's clock and returns whether it is done.
  void enqueue_event(EmulatedStream* stream, const std::function<bool(double& clock)>& run);
  void enqueue_host_function(EmulatedStream* stream, const std::function<void()>& work);
  /// Work of the device in which devices of other ranks take part: `run` returns whether it is done.
  void enqueue_outside(EmulatedStream* stream, const std::function<bool()>& run);
  /// The same on a captured stream: each launch of the graph runs what `begin` then makes.
  void capture_outside(EmulatedStream* stream, const std::function<std::function<bool()>()>& begin);
  /// Captured work, in one of the orders that are allowed, on a stream that is not captured.
  void enqueue_graph(EmulatedStream* stream, const EmulatedGraph& graph);
  void finish(EmulatedStream* stream);
  /// Runs work until the stream has none left, only other ranks can make it go on, or a moment is over: a
  /// device that works beside its host answers a question soon, however much it has to do. Returns whether
  /// the stream has none left.
  bool advance(EmulatedStream* stream);
  /// The same until `done` returns true. Returns whether it does.
  bool advance(const std::function<bool()>& done);
  /// Runs work until `done` returns true.
  void run_until(const std::function<bool()>& done);
  /// Finishes the streams of a device.
  void finish_all(int device);
  /// Ends the process if a host function calls this.
  void require_no_host_function() const;

 private:
  Streams() = default;
  EmulatedStream& stream_of(EmulatedStream* stream);
  void put(EmulatedStream& stream, EmulatedStream::Item item);
  void reseed();
  bool run_some(const std::vector<EmulatedStream*>& busy);
  bool run_any();
  std::vector<EmulatedStream*> busy_streams() const;

  std::recursive_mutex
      mutex_;  // guards the rest; held while work runs, so device code never runs in parallel
  std::map<int, EmulatedStream> defaults_;  // by device
  std::vector<EmulatedStream*> streams_;    // in the order in which they were made
  std::mt19937 random_;
  unsigned seed_ = std::mt19937::default_seed;
};

}  // namespace megalith::emulator
