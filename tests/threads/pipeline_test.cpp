#include "libcore/threads/pipeline.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

struct Number {
  int value = 0, doubled = 0;
};

/// Sends the numbers 0 to count-1 through a pipeline, whose source and work can be made to fail.
struct Counting {
  int count = 1000;
  int source_fails_at = -1;
  std::vector<int> work_fails_at = {};
  int sink_fails_at = -1;
  PipelineLimits limits = {.workers = 4, .items = 10, .weight = 100};
  std::vector<int> got = {};
  std::atomic<int> produced{0};

  void run() {
    int next = 0;
    PipelineStages<Number> stages;
    stages.source = [&](size_t, Number& n, const auto&) {
      if (next == source_fails_at) fail(ErrorKind::kData, "source ", next);
      if (next == count) return false;
      n.value = next++;
      produced = next;
      return true;
    };
    stages.work = [&](size_t, Number& n) {
      if (n.value % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      for (const int bad : work_fails_at)
        if (n.value == bad) fail(ErrorKind::kData, "work ", bad);
      n.doubled = 2 * n.value;
    };
    stages.sink = [&](Number& n) {
      if (n.value == sink_fails_at) fail(ErrorKind::kIo, "sink ", n.value);
      got.push_back(n.doubled);
    };
    Pipeline<Number>(limits, stages).run();
  }
  std::string error() {
    try {
      run();
    } catch (const Error& e) {
      return e.what();
    }
    return "none";
  }
};

std::vector<int> doubles(int count) {
  std::vector<int> out;
  for (int i = 0; i < count; ++i) out.push_back(2 * i);
  return out;
}

TEST(Pipeline, KeepsTheOrderWhateverTheWorkers) {
  for (const size_t workers : {1U, 2U, 7U}) {
    for (const size_t items : {1U, 2U, 16U}) {
      Counting c{.limits = {.workers = workers, .items = items, .weight = 100}};
      c.run();
      EXPECT_EQ(c.got, doubles(1000));
    }
  }
}

TEST(Pipeline, EndsOnAnEmptySource) {
  Counting c{.count = 0};
  c.run();
  EXPECT_TRUE(c.got.empty());
}

TEST(Pipeline, RethrowsTheFirstErrorOfTheDataAfterAllThatCameBefore) {
  for (int round = 0; round < 20; ++round) {
    Counting c{.work_fails_at = {503, 501, 502}};
    EXPECT_EQ(c.error(), "work 501");
    EXPECT_EQ(c.got, doubles(501));
    EXPECT_LE(c.produced, 501 + 10 + 1);  // the source stops soon after the failure
  }
  Counting late{.source_fails_at = 300, .work_fails_at = {200}};
  EXPECT_EQ(late.error(), "work 200");
  Counting early{.source_fails_at = 200, .work_fails_at = {300}};
  EXPECT_EQ(early.error(), "source 200");
  EXPECT_EQ(early.got, doubles(200));
}

TEST(Pipeline, EndsWhenTheSinkFails) {
  Counting c{.count = 1'000'000, .sink_fails_at = 5};
  EXPECT_EQ(c.error(), "sink 5");
  EXPECT_EQ(c.got, doubles(5));
}

TEST(Pipeline, NeverHoldsMoreItemsOrWeightThanAllowed) {
  std::atomic<int> inside{0}, most_inside{0};
  std::atomic<size_t> weight{0}, most_weight{0};
  const auto raise = [](auto& most, auto value) {
    for (auto seen = most.load(); value > seen && !most.compare_exchange_weak(seen, value);) {
    }
  };
  int next = 0;
  PipelineStages<size_t> stages;
  stages.weight = 10;
  stages.source = [&](size_t, size_t& own, const auto& grow) {
    if (next == 500) return false;
    own = next % 50 == 49 ? 1000 : next % 3 == 0 ? 30 : 10;  // 1000 is above the limit: it must be alone
    if (own > 10) grow(own);
    weight += own;
    EXPECT_TRUE(own < 1000 || inside == 0);
    if (own < 1000) raise(most_weight, weight.load());
    raise(most_inside, ++inside);
    ++next;
    return true;
  };
  stages.work = [](size_t, size_t&) { std::this_thread::sleep_for(std::chrono::microseconds(50)); };
  stages.sink = [&](size_t& own) {
    weight -= own;
    --inside;
  };
  Pipeline<size_t>({.workers = 3, .items = 6, .weight = 100}, stages).run();
  EXPECT_EQ(next, 500);
  EXPECT_LE(most_inside, 6);
  EXPECT_LE(most_weight, 100U);
}

TEST(Pipeline, StopsASourceThatWaitsForRoomAndOneThatWaitsOutside) {
  PipelineStages<int> stages;
  std::atomic<bool> interrupted{false};
  int next = 0;
  stages.source = [&](size_t, int& n, const auto& grow) {
    n = next++;
    if (n == 1) {
      while (!interrupted) std::this_thread::yield();
      grow(1'000'000);  // waits for the previous item until the pipeline stops
    }
    return true;
  };
  stages.work = [](size_t, int&) {};
  stages.sink = [](int&) { fail(ErrorKind::kIo, "disk full"); };
  stages.interrupt = [&] { interrupted = true; };
  EXPECT_THROW(Pipeline<int>({.workers = 2, .items = 4, .weight = 10}, stages).run(), Error);
}

TEST(PipelineGate, GivesAWorkerTheSlotThatItHad) {
  PipelineGate gate({.workers = 2, .items = 3, .weight = 100}, 1);
  const auto fill = [&](size_t worker) {
    const PipelineGate::Turn turn = gate.next(worker).value();
    EXPECT_FALSE(turn.sink);
    gate.ready(false);
    return turn.slot;
  };
  const auto sink = [&](size_t worker, size_t slot) {
    const PipelineGate::Turn turn = gate.next(worker).value();
    EXPECT_TRUE(turn.sink);
    EXPECT_EQ(turn.slot, slot);
    gate.leave();
  };
  const size_t first = fill(0), second = fill(1);
  EXPECT_NE(first, second);
  gate.finish(0);
  gate.finish(1);
  sink(1, first);  // it does not matter which worker takes an item to the sink
  sink(1, second);
  EXPECT_EQ(fill(0), first);  // its own last slot, although `second` was freed later
  EXPECT_EQ(fill(1), second);
  EXPECT_NE(fill(1), first);  // a slot that it has not used before
}

}  // namespace
}  // namespace megalith
