#include "libcore/train/schedule.h"

#include <algorithm>
#include <deque>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::test_data;

std::string text_of(const std::vector<Step>& plan) {
  std::ostringstream out;
  for (size_t i = 0; i < plan.size(); ++i) out << (i ? " " : "") << plan[i];
  return out.str();
}

/// All ranks' plans played over links that deliver in order. A forward takes 1 time unit, a backward 2.
class Replay {
 public:
  Replay(int ranks, int chunks, int microbatches, int group) : last_stage_(ranks * chunks - 1) {
    for (int r = 0; r < ranks; ++r)
      ranks_.push_back({.plan = plan_pipeline(r, ranks, chunks, microbatches, group)});
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < ranks; ++r)
        while (advance(r)) moved = true;
    }
    for (const Rank& rank : ranks_) {
      finished_ =
          finished_ && rank.done == rank.plan.size() && rank.forward_in.empty() && rank.backward_in.empty();
      time_ = std::max(time_, rank.clock);
    }
  }
  bool finished() const { return finished_; }  // false: ranks wait on each other for ever
  bool in_order() const { return in_order_; }  // what arrives first is what is wanted first
  int time() const { return time_; }

 private:
  struct Message {
    Step step;
    int time;
  };
  struct Rank {
    std::vector<Step> plan;
    std::deque<Message> forward_in = {}, backward_in = {};
    size_t done = 0;
    int clock = 0;
  };

  bool advance(int r) {
    Rank& rank = ranks_[static_cast<size_t>(r)];
    if (rank.done == rank.plan.size()) return false;
    const Step step = rank.plan[rank.done];
    const int count = static_cast<int>(ranks_.size());
    const int stage = step.chunk * count + r;
    const bool forward = step.kind == Step::kForward;
    if (forward ? stage > 0 : stage < last_stage_) {
      std::deque<Message>& in = forward ? rank.forward_in : rank.backward_in;
      if (in.empty()) return false;
      if (in.front().step != step) in_order_ = false;
      rank.clock = std::max(rank.clock, in.front().time);
      in.pop_front();
    }
    rank.clock += forward ? 1 : 2;
    ++rank.done;
    if (forward ? stage < last_stage_ : stage > 0) {
      const int next = forward ? stage + 1 : stage - 1;
      Rank& peer = ranks_[static_cast<size_t>(next % count)];
      (forward ? peer.forward_in : peer.backward_in)
          .push_back({{step.kind, next / count, step.microbatch}, rank.clock});
    }
    return true;
  }

  int last_stage_, time_ = 0;
  bool finished_ = true, in_order_ = true;
  std::vector<Rank> ranks_;
};

TEST(PlanPipeline, EqualsMegatronsOrder) {
  std::ifstream golden(test_data("train/goldens/schedule.txt"));
  int cases = 0;
  for (std::string line; std::getline(golden, line);) {
    if (line.starts_with("#")) continue;
    int rank = 0, ranks = 0, chunks = 0, microbatches = 0, group = 0;
    std::istringstream(line) >> rank >> ranks >> chunks >> microbatches >> group;
    EXPECT_EQ(text_of(plan_pipeline(rank, ranks, chunks, microbatches, group)),
              line.substr(line.find(" : ") + 3))
        << line;
    ++cases;
  }
  EXPECT_EQ(cases, 57);
}

TEST(PlanPipeline, OneRankAlternatesForwardAndBackward) {
  EXPECT_EQ(text_of(plan_pipeline(0, 1, 1, 3, 1)), "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2");
  EXPECT_TRUE(plan_pipeline(0, 1, 1, 0, 1).empty());
}

TEST(PlanPipeline, ReplaysWithoutDeadlockInOrderAndWithTheKnownBubble) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (int chunks = 1; chunks <= (ranks == 1 ? 1 : 4); ++chunks)
      for (int groups = 1; groups <= 5; ++groups) {
        const Replay replay(ranks, chunks, groups * ranks, ranks);
        EXPECT_TRUE(replay.finished() && replay.in_order()) << ranks << " " << chunks << " " << groups;
        // Work of all chunks plus the time that the last rank's first chunk waits and the first rank's last:
        // p - 1 of each kind.
        if (chunks == 1 || groups > 1) {
          EXPECT_EQ(replay.time(), 3 * chunks * groups * ranks + 3 * (ranks - 1))
              << ranks << " " << chunks << " " << groups;
        }
      }
}

TEST(PlanPipeline, ReplaysUnevenGroups) {
  int cases = 0;
  for (int ranks = 2; ranks <= 6; ++ranks)
    for (int chunks = 2; chunks <= 4; ++chunks)
      for (int group : {ranks, ranks + 1, 2 * ranks})
        for (int m = ranks; m <= 4 * ranks; ++m) {
          if (m % group != 0 && m % group < ranks) continue;
          const Replay replay(ranks, chunks, m, group);
          EXPECT_TRUE(replay.finished() && replay.in_order())
              << ranks << " " << chunks << " " << group << " " << m;
          ++cases;
        }
  EXPECT_GT(cases, 200);
}

TEST(PlanPipeline, RefusesGroupsThatCannotInterleave) {
  try {
    plan_pipeline(0, 4, 2, 6, 4);
    FAIL() << "a last group of 2 microbatches on 4 ranks was planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("nearest number of microbatches that works: 8"),
              std::string::npos)
        << error.what();
  }
  EXPECT_THROW(plan_pipeline(0, 4, 2, 8, 3), Error);
}

TEST(TapesInFlight, IsOneWithoutPipelineAndTheDepthWithOne) {
  EXPECT_EQ(tapes_in_flight(plan_pipeline(0, 1, 1, 5, 1)), 1);
  EXPECT_EQ(tapes_in_flight(plan_pipeline(0, 4, 1, 9, 4)), 4);
  EXPECT_EQ(tapes_in_flight(plan_pipeline(3, 4, 1, 9, 4)), 1);
  EXPECT_EQ(tapes_in_flight(plan_pipeline(0, 4, 1, 2, 4)), 2);
}

TEST(PlanForward, TakesEachMicrobatchThroughAllChunks) {
  EXPECT_EQ(text_of(plan_forward(2, 2)), "F0.0 F1.0 F0.1 F1.1");
}

}  // namespace
}  // namespace megalith
