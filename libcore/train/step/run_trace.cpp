#include "libcore/train/step/run_trace.h"

#include <chrono>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/parallel/exchange.h"

namespace megalith {
namespace {

double us(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

/// Names a process, or one of its threads.
Json name_event(const char* what, int process, int thread, const std::string& name) {
  return Json(Json::Object{{"name", what},
                           {"ph", "M"},
                           {"pid", process},
                           {"tid", thread},
                           {"args", Json(Json::Object{{"name", name}})}});
}

/// A span's times on the clock of its rank's machine, in microseconds.
struct TimedSpan {
  std::string name;
  double begin_us = 0, us = 0;

  template <class V>
  void members(V&& visit) {
    visit(name, begin_us, us);
  }
};

struct TimedLane {
  std::string name;
  std::vector<TimedSpan> spans;

  template <class V>
  void members(V&& visit) {
    visit(name, spans);
  }
};

struct RankTrace {
  std::string name, ops;
  std::vector<TimedLane> lanes;

  template <class V>
  void members(V&& visit) {
    visit(name, ops, lanes);
  }
};

RankTrace timed(const std::string& rank_name, std::span<const TraceLane> lanes, const std::string& ops) {
  // Converts to absolute time, because ranks in several processes have no other common clock.
  const std::chrono::nanoseconds offset =
      std::chrono::system_clock::now().time_since_epoch() - SpanLog::Clock::now().time_since_epoch();
  RankTrace trace{.name = rank_name, .ops = ops, .lanes = {}};
  for (const TraceLane& lane : lanes) {
    TimedLane& out = trace.lanes.emplace_back(TimedLane{.name = lane.name, .spans = {}});
    for (const SpanLog::Span& span : lane.spans)
      out.spans.push_back({.name = span.name,
                           .begin_us = us(span.begin.time_since_epoch() + offset),
                           .us = us(span.end - span.begin)});
  }
  return trace;
}

std::string events_of(int rank, const RankTrace& trace) {
  std::vector<std::string> events = {name_event("process_name", rank, 0, trace.name).dump()};
  for (size_t i = 0; i < trace.lanes.size(); ++i) {
    const TimedLane& lane = trace.lanes[i];
    const int thread = static_cast<int>(i);
    events.push_back(name_event("thread_name", rank, thread, lane.name).dump());
    for (const TimedSpan& span : lane.spans)
      events.push_back(to_json({.name = span.name,
                                .category = lane.name,
                                .begin_us = span.begin_us,
                                .us = span.us,
                                .process = rank,
                                .thread = thread})
                           .dump());
  }
  return join(events, ",\n");
}

}  // namespace

Json to_json(const TraceEvent& event) {
  return Json(Json::Object{{"name", event.name},
                           {"cat", event.category},
                           {"ph", "X"},
                           {"ts", event.begin_us},
                           {"dur", event.us},
                           {"pid", event.process},
                           {"tid", event.thread}});
}

void write_run_trace(const std::string& path, Communicator& world, const std::string& rank_name,
                     std::span<const TraceLane> lanes, const std::string& ops) {
  const std::vector<RankTrace> traces = exchange_values(world, timed(rank_name, lanes, ops));
  if (world.rank() > 0) return;
  std::vector<std::string> events, tables;
  for (size_t rank = 0; rank < traces.size(); ++rank) {
    events.push_back(events_of(static_cast<int>(rank), traces[rank]));
    tables.push_back(traces[rank].ops.empty() ? "null" : traces[rank].ops);
  }
  const std::string end = ops.empty() ? "\n]}\n" : concat("\n],\n\"ops\":[\n", join(tables, ",\n"), "\n]}\n");
  write_file(path, concat("{\"traceEvents\":[\n", join(events, ",\n"), end), OutputKind::kStream);
}

}  // namespace megalith
