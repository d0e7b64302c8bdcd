#include "libcore/checkpoint/native/joint_save.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "libcore/threads/last_wait.h"

namespace megalith {
namespace {

using std::chrono::milliseconds;

/// The steps of the jobs of all ranks, in order: "write 1" means that rank 1 begins to write, "wrote 1" that
/// it has finished.
class Diary {
 public:
  void note(const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  size_t place(const std::string& line) const {
    const std::vector<std::string> all = lines();
    const auto at = std::find(all.begin(), all.end(), line);
    EXPECT_NE(at, all.end()) << line;
    return static_cast<size_t>(at - all.begin());
  }
  bool has(const std::string& line) const {
    const std::vector<std::string> all = lines();
    return std::find(all.begin(), all.end(), line) != all.end();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// A job that calls `during` in the middle of its write() and records its steps in the diary.
class NotedJob final : public CheckpointJob {
 public:
  using During = std::function<void(int rank, const Check& check)>;
  NotedJob(Diary& diary, During during) : diary_(diary), during_(std::move(during)) {}
  void begin() override { diary_.note("begin"); }
  void write(int rank, const Check& check) override {
    diary_.note(concat("write ", rank));
    if (during_) during_(rank, check);
    diary_.note(concat("wrote ", rank));
  }
  void publish(int ranks) override { diary_.note(concat("publish ", ranks)); }
  void discard() noexcept override { diary_.note("discard"); }

 private:
  Diary& diary_;
  During during_;
};

constexpr milliseconds kTimeout(1000);  // a peer silent for this long counts as gone

/// Runs `body` on each rank, each in a thread of its own. Returns for each rank the message of what it threw.
std::vector<std::string> run(int ranks, const std::function<void(Communicator&)>& body) {
  std::vector<std::string> messages(static_cast<size_t>(ranks));
  const auto each = [&](Communicator& comm) {
    try {
      body(comm);
    } catch (const Error& error) {
      messages[static_cast<size_t>(comm.rank())] = concat(exit_code(error.kind()), ' ', error.what());
    }
  };
  try {
    run_thread_ranks(ranks, {.timeout = kTimeout}, each);
  } catch (const Error&) {  // one rank's error; the messages of all ranks are in `messages`
  }
  return messages;
}
void expect_none(const std::vector<std::string>& messages) {
  for (const std::string& message : messages) EXPECT_EQ(message, "");
}

TEST(JointSave, NamesNothingThatAnotherRankHasNotWritten) {
  Diary diary;
  std::atomic<bool> release{false};
  expect_none(run(3, [&](Communicator& comm) {
    JointSave save(comm, kTimeout);
    save.start(std::make_unique<NotedJob>(diary, [&](int rank, const auto&) {
      while (rank == 1 && !release) std::this_thread::sleep_for(milliseconds(1));
    }));
    // While rank 1 still writes, ranks 0 and 2 have long finished writing, and training continues.
    const auto written = [&] { return diary.has("wrote 0") && diary.has("wrote 2"); };
    for (int step = 0; step < 200 || (step < 20000 && !written()); ++step) {
      EXPECT_FALSE(save.advance());
      EXPECT_TRUE(save.under_way());
      std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_TRUE(written());
    EXPECT_FALSE(diary.has("publish 3"));
    comm.exchange({});
    release = true;
    save.finish();
    EXPECT_FALSE(save.under_way());
    EXPECT_TRUE(diary.has("publish 3"));
  }));
  EXPECT_EQ(diary.place("begin"), 0U);
  EXPECT_EQ(diary.place("publish 3"), 7U);
  EXPECT_EQ(diary.lines().size(), 8U);
}

TEST(JointSave, OneIsUnderWayAtATime) {
  Diary diary;
  expect_none(run(2, [&](Communicator& comm) {
    JointSave save(comm, kTimeout);
    for (int i = 0; i < 3; ++i) save.start(std::make_unique<NotedJob>(diary, nullptr));
    save.finish();
  }));
  const std::vector<std::string> lines = diary.lines();
  ASSERT_EQ(lines.size(), 18U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(lines[6 * i], "begin");
    EXPECT_EQ(lines[6 * i + 5], "publish 2");
  }
}

// The disk of rank 1 takes three times as long as a rank may be silent before it counts as gone.
TEST(JointSave, ASlowDiskIsNoHang) {
  Diary diary;
  expect_none(run(2, [&](Communicator& comm) {
    JointSave(comm, kTimeout).save(std::make_unique<NotedJob>(diary, [](int rank, const auto&) {
      if (rank == 1) std::this_thread::sleep_for(3 * kTimeout);
    }));
  }));
  EXPECT_TRUE(diary.has("publish 2"));
}

TEST(JointSave, AFailureOfOneIsToldToAllAndEndsTheirWriting) {
  for (const int failing : {0, 1, 2}) {
    Diary diary;
    const auto messages = run(3, [&](Communicator& comm) {
      JointSave save(comm, kTimeout);
      save.start(std::make_unique<NotedJob>(diary, [&](int rank, const auto& check) {
        if (rank == failing) fail(ErrorKind::kIo, "disk ", rank, " is full");
        for (;;) {  // a disk that never finishes
          std::this_thread::sleep_for(milliseconds(1));
          check();
        }
      }));
      save.finish();
    });
    for (int rank = 0; rank < 3; ++rank) {
      const std::string full = concat("disk ", failing, " is full");
      EXPECT_EQ(messages[static_cast<size_t>(rank)],
                rank == failing ? "74 " + full
                                : concat("74 another rank could not write its part of the checkpoint: rank ",
                                         failing, ": ", full));
    }
    EXPECT_EQ(diary.lines().back(), "discard");
    EXPECT_FALSE(diary.has("publish 3"));
  }
}

TEST(JointSave, TheNextOneWorksAfterAFailure) {
  Diary diary;
  expect_none(run(2, [&](Communicator& comm) {
    JointSave save(comm, kTimeout);
    EXPECT_THROW(save.save(std::make_unique<NotedJob>(
                     diary, [](int rank, const auto&) { fail(ErrorKind::kIo, "disk ", rank); })),
                 Error);
    EXPECT_FALSE(save.under_way());
    save.save(std::make_unique<NotedJob>(diary, nullptr));
  }));
  EXPECT_TRUE(diary.has("publish 2"));
}

// The run fails while its checkpoint is being written. A single rank must complete the save.
TEST(JointSave, OneRankAloneFinishesWhatItBegan) {
  Diary diary;
  run(1, [&](Communicator& comm) {
    JointSave save(comm, kTimeout);
    save.start(std::make_unique<NotedJob>(
        diary, [](int, const auto&) { std::this_thread::sleep_for(milliseconds(50)); }));
    fail(ErrorKind::kData, "something else");
  });
  EXPECT_EQ(diary.lines().back(), "publish 1");
}

TEST(JointSave, ARankThatFailsOtherwiseLeavesNothingUnderWay) {
  Diary diary;
  const auto messages = run(2, [&](Communicator& comm) {
    JointSave save(comm, kTimeout);
    save.start(std::make_unique<NotedJob>(diary, [](int, const auto& check) {
      for (;;) check();
    }));
    if (comm.rank() == 1) {
      comm.abort("something else");
      fail(ErrorKind::kData, "something else");
    }
    save.finish();
  });
  EXPECT_NE(messages[0].find("something else"), std::string::npos) << messages[0];
  EXPECT_TRUE(diary.has("discard"));
  EXPECT_FALSE(diary.has("publish 2"));
}

/// A job of which one step never ends.
class EndlessJob final : public CheckpointJob {
 public:
  enum class Step { kWrite, kPublish };
  EndlessJob(Step endless, std::atomic<bool>& reached) : endless_(endless), reached_(reached) {}
  void begin() override {}
  void write(int, const Check&) override { step(Step::kWrite); }
  void publish(int) override { step(Step::kPublish); }
  void discard() noexcept override {}

 private:
  void step(Step now) {
    if (now != endless_) return;
    reached_ = true;
    std::promise<void>().get_future().wait();
  }
  const Step endless_;
  std::atomic<bool>& reached_;
};

TEST(JointSaveDeathTest, ASaveThatNeverEndsEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int ranks : {1, 2})
    for (const EndlessJob::Step step : {EndlessJob::Step::kWrite, EndlessJob::Step::kPublish})
      EXPECT_EXIT(
          {
            set_last_wait_limit(milliseconds(200));
            std::atomic<bool> reached{false};
            run(ranks, [&](Communicator& comm) {
              JointSave save(comm, kTimeout);
              save.start(std::make_unique<EndlessJob>(step, reached));
              while (!reached) save.advance();
            });
          },
          testing::ExitedWithCode(75), "waited 0.2 s for the thread that writes a checkpoint")
          << ranks;
}

}  // namespace
}  // namespace megalith
