#include "tests/emulator/streams.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "tests/emulator/controls.h"
#include "tests/emulator/graphs.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/report.h"

namespace megalith::emulator {
namespace {
thread_local bool in_host_function = false;
}  // namespace

int& chosen_device() {
  thread_local int device = 0;
  return device;
}

EmulatedStream& Streams::stream_of(EmulatedStream* stream) {
  if (stream != nullptr) return *stream;
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = defaults_.try_emplace(chosen_device());
  if (is_new) {
    found->second.device = chosen_device();
    streams_.push_back(&found->second);
  }
  return found->second;
}

void Streams::require_chosen(EmulatedStream* stream) {
  if (device_of(stream) != chosen_device())
    end_with("work for device " + std::to_string(device_of(stream)) + " is launched while device " +
             std::to_string(chosen_device()) + " is chosen");
}

Streams& Streams::get() {
  static Streams* const kStreams = new Streams;  // lives as long as the process
  return *kStreams;
}

void Streams::require_no_host_function() const {
  if (in_host_function) end_with("a host function calls CUDA");
}

void Streams::add(EmulatedStream* stream) {
  require_no_host_function();
  const std::lock_guard lock(mutex_);
  streams_.push_back(stream);
}

void Streams::remove(EmulatedStream* stream) {
  finish(stream);
  const std::lock_guard lock(mutex_);
  std::erase(streams_, stream);
}

void Streams::put(EmulatedStream& stream, EmulatedStream::Item item) {
  require_no_host_function();
  const std::lock_guard lock(mutex_);
  if (stream.capture)
    stream.capture->add(&stream, std::move(item));
  else
    stream.work.push_back(std::move(item));
}

void Streams::enqueue(EmulatedStream* stream, const std::function<void()>& work, double time) {
  const auto run = [work] {
    work();
    return true;
  };
  put(stream_of(stream), {.run = run, .time = time});
}

void Streams::enqueue_event(EmulatedStream* stream, const std::function<bool(double& clock)>& run) {
  EmulatedStream& on = stream_of(stream);
  put(on, {.run = [run, &on] { return run(on.clock); }, .time = 0});
}

void Streams::enqueue_outside(EmulatedStream* stream, const std::function<bool()>& run) {
  put(stream_of(stream), {.run = run, .time = 1, .outside = true});
}

void Streams::capture_outside(EmulatedStream* stream, const std::function<std::function<bool()>()>& begin) {
  if (!stream_of(stream).capture) end_with("captured work of other ranks comes after its capture has ended");
  put(stream_of(stream), {.run = {}, .time = 1, .outside = true, .begin = begin});
}

void Streams::enqueue_graph(EmulatedStream* stream, const EmulatedGraph& graph) {
  EmulatedStream& on = stream_of(stream);
  std::vector<size_t> order;
  {
    const std::lock_guard lock(mutex_);
    reseed();
    order = graph.an_order(random_);
  }
  for (const size_t node : order) {
    EmulatedStream::Item item = graph.nodes[node].item;
    if (item.begin) item.run = std::exchange(item.begin, nullptr)();
    put(on, std::move(item));
  }
}

void Streams::enqueue_host_function(EmulatedStream* stream, const std::function<void()>& work) {
  EmulatedStream& on = stream_of(stream);
  const auto run = [work, device = on.device] {
    DeviceMemory::get().close();
    in_host_function = true;
    work();
    in_host_function = false;
    DeviceMemory::get().open(device);
    return true;
  };
  put(on, {.run = run, .time = 0});
}

std::vector<EmulatedStream*> Streams::busy_streams() const {
  std::vector<EmulatedStream*> busy;
  for (EmulatedStream* const stream : streams_)
    if (!stream->work.empty()) busy.push_back(stream);
  return busy;
}

bool Streams::run_some(const std::vector<EmulatedStream*>& busy) {
  constexpr unsigned kMaxItems = 8;
  for (EmulatedStream* const stream : busy) {
    bool ran = false;
    DeviceMemory::get().open(stream->device);
    for (unsigned items = 1 + random_() % kMaxItems; items > 0 && !stream->work.empty(); --items) {
      if (!stream->work.front().run()) break;
      stream->clock += stream->work.front().time * controls().work_seconds;
      stream->work.pop_front();
      ran = true;
    }
    if (ran) return true;
  }
  return false;
}

void Streams::finish(EmulatedStream* stream) {
  run_until([&on = stream_of(stream)] { return on.work.empty(); });
}

void Streams::reseed() {
  if (const unsigned order = controls().order; order != seed_) random_.seed(seed_ = order);
}

/// Runs some work of any stream. Returns false if only other ranks can make the streams go on; ends the
/// process if nothing can.
bool Streams::run_any() {
  std::vector<EmulatedStream*> busy = busy_streams();
  std::shuffle(busy.begin(), busy.end(), random_);
  if (run_some(busy)) return true;
  const bool outside = std::any_of(busy.begin(), busy.end(),
                                   [](const EmulatedStream* stream) { return stream->work.front().outside; });
  if (!outside) end_with("streams wait for each other for ever");
  return false;
}

void Streams::run_until(const std::function<bool()>& done) {
  constexpr std::chrono::microseconds kBetweenLooks(50);
  require_no_host_function();
  std::unique_lock lock(mutex_);
  reseed();
  if (done()) return;
  while (!done()) {
    if (run_any()) continue;
    DeviceMemory::get().close();
    lock.unlock();
    std::this_thread::sleep_for(kBetweenLooks);
    lock.lock();
  }
  DeviceMemory::get().close();
}

bool Streams::advance(EmulatedStream* stream) {
  return advance([&on = stream_of(stream)] { return on.work.empty(); });
}

bool Streams::advance(const std::function<bool()>& done) {
  constexpr std::chrono::milliseconds kMoment(50);
  require_no_host_function();
  const std::lock_guard lock(mutex_);
  reseed();
  const auto end = std::chrono::steady_clock::now() + kMoment;
  bool all = done();
  for (bool goes_on = true; !all && goes_on; all = done())
    goes_on = run_any() && std::chrono::steady_clock::now() < end;
  DeviceMemory::get().close();
  return all;
}

void Streams::finish_all(int device) {
  run_until([this, device] {
    const std::vector<EmulatedStream*> busy = busy_streams();
    return std::none_of(busy.begin(), busy.end(),
                        [device](const EmulatedStream* stream) { return stream->device == device; });
  });
}

}  // namespace megalith::emulator
