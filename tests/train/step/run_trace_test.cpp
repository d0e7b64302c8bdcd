#include "libcore/train/step/run_trace.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "libcore/train/run/loop.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"
#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

using test::TempDir;

TEST(TraceEvent, IsOneOfChromesCompleteEvents) {
  const Json event = to_json(TraceEvent{"F0.3", "compute", 12.5, 3.25, 1, 2});
  EXPECT_EQ(event.dump(),
            R"({"name": "F0.3", "cat": "compute", "ph": "X", "ts": 12.5, "dur": 3.25, "pid": 1, "tid": 2})");
}

// Compares the whole file with the text that a viewer expects: each rank is a process, and each of its lanes
// a thread.
TEST(RunTrace, NamesTheLanesOfEachRank) {
  const TempDir dir;
  const std::string path = dir / "trace.json";
  run_thread_ranks(2, {}, [&](Communicator& world) {
    const std::string rank = std::to_string(world.rank());
    const std::vector<TraceLane> lanes = {{.name = "lane " + rank, .spans = {}}};
    write_run_trace(path, world, "rank " + rank, lanes);
  });
  EXPECT_EQ(read_file(path),
            "{\"traceEvents\":[\n"
            R"({"name": "process_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": "rank 0"}},)"
            "\n"
            R"({"name": "thread_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": "lane 0"}},)"
            "\n"
            R"({"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "rank 1"}},)"
            "\n"
            R"({"name": "thread_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "lane 1"}})"
            "\n]}\n");
}

// A rank may have recorded nothing.
TEST(RunTrace, GivesARankWithoutOpsNull) {
  const TempDir dir;
  const std::string path = dir / "trace.json";
  run_thread_ranks(3, {}, [&](Communicator& world) {
    write_run_trace(path, world, "rank", {},
                    world.rank() == 1 ? "" : "[" + std::to_string(world.rank()) + "]");
  });
  EXPECT_EQ(Json::load(path)["ops"].dump(), "[[0], null, [2]]");
}

struct Event {
  std::string name;
  double begin, end;
};
/// The events of a run's trace, by rank and lane name.
using Lanes = std::map<std::pair<int64_t, std::string>, std::vector<Event>>;

Lanes traced(PretrainConfig config) {
  const TempDir dir;
  config.train.trace = (dir.path() / "trace.json").string();
  config.train.eval_iters = 0;
  config.finish();
  train(config, test::tiny_data(), nullptr);
  const Json trace = Json::load(config.train.trace);
  std::map<std::pair<int64_t, int64_t>, std::string> names;
  Lanes lanes;
  for (const Json& event : trace["traceEvents"].as_array()) {
    const int64_t rank = event["pid"].as_int(), lane = event["tid"].as_int();
    const std::string& name = event["name"].as_string();
    if (name == "thread_name") names[{rank, lane}] = event["args"]["name"].as_string();
    if (event["ph"].as_string() != "X") continue;
    const double begin = event["ts"].as_double();
    lanes[{rank, names.at({rank, lane})}].push_back({name, begin, begin + event["dur"].as_double()});
  }
  return lanes;
}

std::vector<Event> named(const std::vector<Event>& events, const std::string& start) {
  std::vector<Event> found;
  for (const Event& event : events)
    if (event.name.starts_with(start)) found.push_back(event);
  return found;
}

void expect_within_steps(const std::vector<Event>& lane) {
  const std::vector<Event> steps = named(lane, "step");
  for (const Event& event : lane)
    EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), [&](const Event& step) {
      return event.begin >= step.begin - 1 && event.end <= step.end + 1;
    })) << event.name;
}

// Traces two steps of a run, with 2 microbatches on each of 2 stages; data-parallel ranks sum buckets.
TEST(RunTrace, HoldsStepsStagesLinksAndBucketsOfEveryRank) {
  PretrainConfig config = test::tiny_config();
  config.parallel = {};
  config.parallel.pipeline = config.parallel.data = 2;
  config.train.global_batch = 8;
  config.train.iters = 5;
  config.train.trace_begin = 2;
  config.train.trace_end = 4;
  const Lanes lanes = traced(config);
  ASSERT_EQ(lanes.size(), 8U);
  for (int rank = 0; rank < 4; ++rank) {
    const std::vector<Event>& compute = lanes.at({rank, "compute"});
    EXPECT_EQ(named(compute, "step").size(), 2U);
    EXPECT_EQ(named(compute, "F0.").size(), 4U);
    EXPECT_EQ(named(compute, "B0.").size(), 4U);
    EXPECT_EQ(named(compute, "receive").size(), 4U);
    EXPECT_EQ(named(compute, "send").size(), 4U);
    EXPECT_EQ(named(compute, "optimizer").size(), 2U);
    expect_within_steps(compute);
    const std::vector<Event>& buckets = lanes.at({rank, "gradient buckets"});
    EXPECT_FALSE(named(buckets, "bucket of units").empty());
    // The last bucket ends before the last step has finished waiting for its buckets.
    const std::vector<Event> waits = named(compute, "wait for buckets");
    ASSERT_EQ(waits.size(), 2U);
    EXPECT_LE(buckets.back().end, waits.back().end + 1);
  }
}

// 2 layers and 2 microbatches: each step has 4 attentions, each with its gradient, and 16 products in each of
// three directions, besides the head's.
TEST(RunTrace, SaysHowNearEachOpCameToTheRoof) {
  const TempDir dir;
  PretrainConfig config = test::tiny_config();
  config.parallel = {};
  config.train.iters = 5;
  config.train.trace = (dir.path() / "trace.json").string();
  config.train.trace_begin = 2;
  config.train.trace_end = 4;
  config.finish();
  const test::LogLines log;
  train(config, test::tiny_data(), nullptr);
  const std::string said = join(log.lines, "\n");
  EXPECT_NE(said.find("ops of the traced steps; the roof is a product at "), std::string::npos) << said;
  const Json trace = Json::load(config.train.trace);
  ASSERT_EQ(trace["ops"].as_array().size(), 1U);
  std::map<std::string, double> calls;
  for (const Json& op : trace["ops"].as_array()[0]["ops"].as_array()) {
    const std::string& name = op["op"].as_string();
    const bool product = name.starts_with("gemm ");
    calls[product ? name.substr(0, name.find(' ', 5)) : name] += op["calls_per_step"].as_double();
    EXPECT_GT(op["share_of_roof"].as_double(), 0) << name;
    EXPECT_NE(said.find("\n" + name + " "), std::string::npos) << name;
  }
  const auto passes =
      static_cast<double>(config.model.layers * (config.train.global_batch / config.train.micro_batch));
  EXPECT_EQ(calls["attention"], passes);
  EXPECT_EQ(calls["attention_grad"], passes);
  for (const char* const direction : {"gemm forward", "gemm dgrad", "gemm wgrad"})
    EXPECT_GT(calls[direction], 4 * passes) << direction;
}

TEST(RunTrace, ShowsWhatTensorAndContextRanksExchange) {
  PretrainConfig config = test::tiny_config();
  config.model.seq_length = config.model.max_positions = 8;
  config.parallel = {};
  config.parallel.tensor = config.parallel.context = 2;
  config.train.iters = 1;
  config.train.trace_begin = 0;
  config.train.trace_end = 1;
  const Lanes lanes = traced(config);
  const std::vector<Event>& compute = lanes.at({3, "compute"});
  // 2 microbatches * 2 layers, forward and backward
  EXPECT_EQ(named(compute, "context all_gather").size(), 8U);
  EXPECT_EQ(named(compute, "context reduce_scatter").size(), 4U);
  EXPECT_GE(named(compute, "tensor all_reduce").size(), 16U);
  expect_within_steps(compute);
}

TEST(RunTrace, OfNoStepIsRefusedBeforeTheRun) {
  PretrainConfig config = test::tiny_config();
  config.train.trace = "trace.json";
  config.train.trace_begin = 5;
  config.train.trace_end = 5;
  Problems problems;
  config.train.validate(problems);
  EXPECT_EQ(problems.text(),
            "--profile-step-end 5 is not after --profile-step-start 5, "
            "so that --trace trace.json would hold no step");
}

}  // namespace
}  // namespace megalith
