#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/tensor/device.h"

namespace megalith {

/// Collects spans of streams' work while it is switched on. Any thread may call it.
class SpanLog {
 public:
  using Clock = std::chrono::steady_clock;
  struct Span {
    std::string name;
    Clock::time_point begin, end;
  };

  bool on() const { return on_; }
  void set_on(bool on) { on_ = on; }
  void add(Span);
  /// Adds a span whose times take() asks for.
  void add(std::string name, AskTime begin, AskTime end);
  /// The spans that have ended since the last call, in the order of their ends. Waits for the work of a
  /// device that notes times itself.
  std::vector<Span> take();

 private:
  struct Noted {
    Span span;
    AskTime begin = {}, end = {};  // empty: `span` has the times
  };
  std::atomic<bool> on_{false};
  std::mutex mutex_;  // guards noted_
  std::vector<Noted> noted_;
};

/// Records a span of a stream's work: from the start to the end of the work that is enqueued during this
/// object's life. Costs one comparison if the stream has no log, or the log is off.
class StreamSpan {
 public:
  /// The name is concat(parts...).
  template <class... Parts>
  explicit StreamSpan(Stream& stream, const Parts&... parts) {
    if (stream.spans() != nullptr && stream.spans()->on()) begin(stream, concat(parts...));
  }
  ~StreamSpan() {
    if (stream_ != nullptr) end();
  }
  StreamSpan(const StreamSpan&) = delete;
  StreamSpan& operator=(const StreamSpan&) = delete;

 private:
  void begin(Stream&, std::string name);
  void end() noexcept;

  Stream* stream_ = nullptr;  // null: nothing is recorded
  std::shared_ptr<SpanLog::Span> span_;
  AskTime begin_;  // empty: host work notes the time in span_
};

}  // namespace megalith
