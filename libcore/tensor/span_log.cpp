#include "libcore/tensor/span_log.h"

#include <memory>
#include <utility>

namespace megalith {

void SpanLog::add(Span span) {
  const std::scoped_lock lock(mutex_);
  spans_.push_back(std::move(span));
}

std::vector<SpanLog::Span> SpanLog::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(spans_, {});
}

void StreamSpan::begin(Stream& stream, std::string name) {
  stream_ = &stream;
  span_ = std::make_shared<SpanLog::Span>();
  span_->name = std::move(name);
  stream.enqueue([span = span_] { span->begin = SpanLog::Clock::now(); });
}

// Drops the span if the stream has failed; the stream's next call reports the error.
void StreamSpan::end() noexcept {
  try {
    stream_->enqueue([span = span_, log = stream_->spans()] {
      span->end = SpanLog::Clock::now();
      log->add(*span);
    });
  } catch (const std::exception&) {
    span_.reset();
  }
}

}  // namespace megalith
