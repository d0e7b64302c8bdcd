#include "libcore/ops/backend/backend.h"

#include <chrono>
#include <utility>

#include "libcore/base/process.h"

namespace megalith {
namespace {

/// Runs `work`, which copies or fills memory, and adds its cost and time to the trace, as run() does for ops.
template <class Work>
void traced(Stream& stream, const char* name, Cost cost, const Work& work) {
  if (stream.trace() == nullptr) return work();
  stream.trace()->add(name, cost, stream.backend().timed(stream, work));
}

double bytes(const ConstView& view) {
  return static_cast<double>(view.bytes());
}

}  // namespace

WorkTime time_of_call(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return {.seconds = seconds_since(start)};
}

void Stream::copy(View to, ConstView from) {
  require(to.elements() == from.elements(), "copy", "equally many elements", to.shape, from.shape);
  traced(*this, "copy", {0, bytes(to) + bytes(from)}, [&] { backend_->copy(*this, to, from); });
}

void Stream::to_host(void* to, ConstView from) {
  traced(*this, "to_host", {0, bytes(from)}, [&] { backend_->to_host(*this, to, from); });
}

void Stream::from_host(View to, const void* from) {
  traced(*this, "from_host", {0, bytes(to)}, [&] { backend_->from_host(*this, to, from); });
}

void Stream::fill(View to, double value) {
  traced(*this, "fill", {0, bytes(to)}, [&] { backend_->fill(*this, to, value); });
}

void Stream::add(View to, ConstView from) {
  require(to.elements() == from.elements(), "add", "equally many elements", to.shape, from.shape);
  traced(*this, "add", {static_cast<double>(to.elements()), 2 * bytes(to) + bytes(from)},
         [&] { backend_->add(*this, to, from); });
}

void Stream::enqueue(std::function<void()> work, std::function<void()> give_up) {
  backend_->enqueue(*this, std::move(work), std::move(give_up));
}

Event Stream::record() {
  return backend_->record(*this);
}
void Stream::wait(const Event& event) {
  backend_->wait(*this, event);
}
void Stream::synchronize() {
  backend_->synchronize(*this);
}
AskTime Stream::note_time() {
  return backend_->note_time(*this);
}
void Stream::finish(bool drop) noexcept {
  backend_->finish(*this, drop);
}

}  // namespace megalith
