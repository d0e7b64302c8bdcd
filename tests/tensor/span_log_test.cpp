#include "libcore/tensor/span_log.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "libcore/ops/backend/backend.h"

namespace megalith {
namespace {

std::vector<std::string> names(const std::vector<SpanLog::Span>& spans) {
  std::vector<std::string> all;
  for (const SpanLog::Span& span : spans) all.push_back(span.name);
  return all;
}

TEST(StreamSpan, NotesWhatAStreamDoesWhileTheLogIsOn) {
  const auto backend = make_cpu_backend();
  SpanLog log;
  Stream stream = backend->make_stream();
  { const StreamSpan unnoted(stream, "no log"); }
  stream.set_spans(&log);
  { const StreamSpan unnoted(stream, "off"); }
  log.set_on(true);
  {
    const StreamSpan outer(stream, "step ", 3);
    const StreamSpan inner(stream, "inner");
  }
  const std::vector<SpanLog::Span> spans = log.take();
  ASSERT_EQ(names(spans), (std::vector<std::string>{"inner", "step 3"}));
  EXPECT_LE(spans[1].begin, spans[0].begin);
  EXPECT_LE(spans[0].begin, spans[0].end);
  EXPECT_LE(spans[0].end, spans[1].end);
  EXPECT_TRUE(log.take().empty());
}

// The span is timed on the queue, not in the caller: it lasts as long as the work.
TEST(StreamSpan, OfAQueueLastsAsLongAsItsWork) {
  constexpr std::chrono::milliseconds kWork(30);
  const auto backend = make_cpu_backend();
  SpanLog log;
  log.set_on(true);
  Stream queue = backend->make_queue_stream();
  queue.set_spans(&log);
  {
    const StreamSpan span(queue, "work");
    queue.enqueue([=] { std::this_thread::sleep_for(kWork); });
  }
  queue.synchronize();
  const std::vector<SpanLog::Span> spans = log.take();
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_GE(spans[0].end - spans[0].begin, kWork);
}

TEST(StreamSpan, OfAStreamThatFailedIsNotNoted) {
  const auto backend = make_cpu_backend();
  SpanLog log;
  log.set_on(true);
  Stream queue = backend->make_queue_stream();
  queue.set_spans(&log);
  {
    const StreamSpan span(queue, "work");
    queue.enqueue([] { fail(ErrorKind::kIo, "no disk"); });
  }
  EXPECT_THROW(queue.synchronize(), Error);
  EXPECT_TRUE(log.take().empty());
}

}  // namespace
}  // namespace megalith
