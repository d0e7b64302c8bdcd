#include "libcore/train/schedules/schedule.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <fstream>
#include <optional>
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

struct Pipeline {
  int ranks, chunks, microbatches;
};

/// The plan of each rank for one training step.
std::vector<std::vector<Step>> training_plans(const Pipeline& p, int group) {
  std::vector<std::vector<Step>> plans;
  for (int r = 0; r < p.ranks; ++r)
    plans.push_back(plan_pipeline(r, p.ranks, p.chunks, p.microbatches, group));
  return plans;
}

constexpr size_t kEndless = SIZE_MAX;

/// Executes all ranks' plans over links. A link delivers in order and holds `slots` messages; a sender waits
/// while its link is full. A forward pass takes 1 time unit, a backward pass 2.
class Replay {
 public:
  Replay(const std::vector<std::vector<Step>>& plans, int chunks, size_t slots = kEndless)
      : last_stage_(static_cast<int>(plans.size()) * chunks - 1), slots_(slots) {
    for (const auto& plan : plans) ranks_.push_back({.plan = plan});
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < static_cast<int>(plans.size()); ++r)
        while (advance(r)) moved = true;
    }
    for (const Rank& rank : ranks_) {
      finished_ = finished_ && rank.done == rank.plan.size() && !rank.unsent && rank.forward_in.empty() &&
                  rank.backward_in.empty();
      time_ = std::max(time_, rank.clock);
    }
  }
  bool finished() const { return finished_; }  // false: ranks wait for each other in a cycle
  // Whether every rank needs its messages in the order in which they arrive.
  bool in_order() const { return in_order_; }
  int time() const { return time_; }  // total time if no sender waits for a slot

 private:
  struct Message {
    Step step;
    int time;
  };
  struct Rank {
    std::vector<Step> plan;
    std::deque<Message> forward_in = {}, backward_in = {};
    std::optional<Message> unsent = {};
    size_t receiver = 0;  // receiver of the unsent message
    size_t done = 0;
    int clock = 0;
  };

  int stage(int r, const Step& step) const { return step.chunk * static_cast<int>(ranks_.size()) + r; }

  bool advance(int r) {
    Rank& rank = ranks_[static_cast<size_t>(r)];
    if (rank.unsent) return send(rank);
    if (rank.done == rank.plan.size()) return false;
    const Step step = rank.plan[rank.done];
    const bool forward = step.kind == Step::kForward;
    if (forward ? stage(r, step) > 0 : stage(r, step) < last_stage_) {
      std::deque<Message>& in = forward ? rank.forward_in : rank.backward_in;
      if (in.empty()) return false;
      if (in.front().step != step) in_order_ = false;
      rank.clock = std::max(rank.clock, in.front().time);
      in.pop_front();
    }
    rank.clock += forward ? 1 : 2;
    ++rank.done;
    const int next = forward ? stage(r, step) + 1 : stage(r, step) - 1;
    const int count = static_cast<int>(ranks_.size());
    if (next >= 0 && next <= last_stage_) {
      rank.unsent = {{step.kind, next / count, step.microbatch}, rank.clock};
      rank.receiver = static_cast<size_t>(next % count);
    }
    return true;
  }

  bool send(Rank& rank) {
    Rank& peer = ranks_[rank.receiver];
    std::deque<Message>& link = rank.unsent->step.kind == Step::kForward ? peer.forward_in : peer.backward_in;
    if (link.size() >= slots_) return false;
    link.push_back(*std::exchange(rank.unsent, {}));
    return true;
  }

  int last_stage_, time_ = 0;
  size_t slots_;
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
        const Replay replay(training_plans({ranks, chunks, groups * ranks}, ranks), chunks);
        EXPECT_TRUE(replay.finished() && replay.in_order()) << ranks << " " << chunks << " " << groups;
        // The expected time is the work of all chunks, plus the time in which a rank waits: p - 1 forward and
        // p - 1 backward passes.
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
          const Replay replay(training_plans({ranks, chunks, m}, group), chunks);
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

// Ranks wait only at the start, when the p - 1 ranks after the first wait for the first microbatch. If the
// microbatches went through the pipeline one by one, each would take p * v instead (v chunks on p ranks).
TEST(PlanForward, KeepsEveryRankBusy) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (int chunks = 1; chunks <= (ranks == 1 ? 1 : 4); ++chunks)
      for (int groups = 1; groups <= 4; ++groups) {
        const std::vector<Step> plan = plan_forward(ranks, chunks, groups * ranks);
        const Replay replay(std::vector(static_cast<size_t>(ranks), plan), chunks);
        EXPECT_TRUE(replay.finished() && replay.in_order()) << ranks << " " << chunks << " " << groups;
        EXPECT_EQ(replay.time(), chunks * groups * ranks + ranks - 1)
            << ranks << " " << chunks << " " << groups;
      }
}

TEST(PlanForward, TakesGroupsThroughAChunkInTurn) {
  EXPECT_EQ(text_of(plan_forward(2, 2, 4)), "F0.0 F0.1 F1.0 F1.1 F0.2 F0.3 F1.2 F1.3");
  EXPECT_EQ(text_of(plan_forward(4, 1, 3)), "F0.0 F0.1 F0.2");
  EXPECT_THROW(plan_forward(2, 2, 3), Error);
}

// Links with room for one message are enough: no two ranks wait for each other.
TEST(PlanPipeline, ReplaysWithOneSlotALink) {
  EXPECT_FALSE(Replay(training_plans({2, 1, 2}, 2), 1, 0).finished());
  for (int ranks = 2; ranks <= 8; ++ranks)
    for (int chunks = 1; chunks <= 4; ++chunks)
      for (int groups = 1; groups <= 4; ++groups) {
        const Pipeline pipeline{ranks, chunks, groups * ranks};
        const Replay training(training_plans(pipeline, ranks), chunks, 1);
        EXPECT_TRUE(training.finished() && training.in_order()) << ranks << " " << chunks << " " << groups;
        const std::vector<Step> plan = plan_forward(ranks, chunks, pipeline.microbatches);
        const Replay evaluation(std::vector(static_cast<size_t>(ranks), plan), chunks, 1);
        EXPECT_TRUE(evaluation.finished() && evaluation.in_order())
            << ranks << " " << chunks << " " << groups;
      }
}

}  // namespace
}  // namespace megalith
