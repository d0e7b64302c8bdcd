#include "libcore/tensor/span_log.h"

#include <memory>
#include <utility>

namespace megalith {

void SpanLog::add(Span span) {
  const std::scoped_lock lock(mutex_);
  noted_.push_back({std::move(span)});
}

void SpanLog::add(std::string name, AskTime begin, AskTime end) {
  const std::scoped_lock lock(mutex_);
  noted_.push_back({{.name = std::move(name), .begin = {}, .end = {}}, std::move(begin), std::move(end)});
}

std::vector<SpanLog::Span> SpanLog::take() {
  std::vector<Noted> noted;
  {
    const std::scoped_lock lock(mutex_);
    noted.swap(noted_);
  }
  std::vector<Span> spans;
  for (Noted& one : noted) {
    if (one.begin) {
      one.span.begin = one.begin();
      one.span.end = one.end();
    }
    spans.push_back(std::move(one.span));
  }
  return spans;
}

void StreamSpan::begin(Stream& stream, std::string name) {
  stream_ = &stream;
  span_ = std::make_shared<SpanLog::Span>();
  span_->name = std::move(name);
  begin_ = stream.note_time();
  if (begin_) return;
  stream.enqueue([span = span_] { span->begin = SpanLog::Clock::now(); });
}

// Drops the span if the stream has failed; the stream's next call reports the error.
void StreamSpan::end() noexcept {
  try {
    if (begin_) return stream_->spans()->add(span_->name, begin_, stream_->note_time());
    stream_->enqueue([span = span_, log = stream_->spans()] {
      span->end = SpanLog::Clock::now();
      log->add(*span);
    });
  } catch (const std::exception&) {
    span_.reset();
  }
}

}  // namespace megalith
