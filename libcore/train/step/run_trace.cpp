#include "libcore/train/step/run_trace.h"

#include <chrono>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"

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

std::string events_of(int rank, const std::string& rank_name, std::span<const TraceLane> lanes) {
  // In absolute time: ranks in several processes have no other common clock.
  const std::chrono::nanoseconds offset =
      std::chrono::system_clock::now().time_since_epoch() - SpanLog::Clock::now().time_since_epoch();
  std::vector<std::string> events = {name_event("process_name", rank, 0, rank_name).dump()};
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    const int thread = static_cast<int>(lane);
    events.push_back(name_event("thread_name", rank, thread, lanes[lane].name).dump());
    for (const SpanLog::Span& span : lanes[lane].spans)
      events.push_back(to_json({.name = span.name,
                                .category = lanes[lane].name,
                                .begin_us = us(span.begin.time_since_epoch() + offset),
                                .us = us(span.end - span.begin),
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
                     std::span<const TraceLane> lanes) {
  const std::vector<std::string> all = world.exchange(events_of(world.rank(), rank_name, lanes));
  if (world.rank() == 0)
    write_file(path, concat("{\"traceEvents\":[\n", join(all, ",\n"), "\n]}\n"), OutputKind::kStream);
}

}  // namespace megalith
