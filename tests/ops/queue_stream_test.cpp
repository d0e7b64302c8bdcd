#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/ops/backend/backend.h"
#include "libcore/ops/cpu/threads.h"
#include "tests/support/processes.h"

namespace megalith {
namespace {

using namespace std::chrono_literals;

/// Work that waits until open(). The stream must be synchronized before the gate is destroyed.
class Gate {
 public:
  std::function<void()> wait() {
    return [this] {
      entered_.set_value();
      opened_.wait();
    };
  }
  void await_entry() { entered_.get_future().wait(); }
  void open() { promise_.set_value(); }

 private:
  std::promise<void> entered_, promise_;
  std::shared_future<void> opened_ = promise_.get_future().share();
};

class QueueStream : public testing::Test {
 protected:
  template <class T>
  static View view(std::vector<T>& values, DType dtype) {
    return {values.data(), dtype, {static_cast<int64_t>(values.size())}};
  }

  std::unique_ptr<Backend> backend_ = make_cpu_backend();
  Stream compute_ = backend_->make_stream(), queue_ = backend_->make_queue_stream();
};

/// The kind and the message of the error that `call` throws.
template <class Call>
std::pair<std::optional<ErrorKind>, std::string> failure_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {};
}

TEST_F(QueueStream, WorksInOrderOnAThreadOfItsOwn) {
  std::vector<int> order;
  std::thread::id where;
  for (int i = 0; i < 1000; ++i) queue_.enqueue([&order, i] { order.push_back(i); });
  queue_.enqueue([&where] { where = std::this_thread::get_id(); });
  queue_.synchronize();
  ASSERT_EQ(order.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST_F(QueueStream, DoesNotMakeItsCallerWait) {
  Gate gate;
  std::atomic<bool> done{false};
  queue_.enqueue(gate.wait());
  queue_.enqueue([&] { done = true; });
  gate.await_entry();
  EXPECT_FALSE(done.load());
  gate.open();
  queue_.synchronize();
  EXPECT_TRUE(done.load());
}

TEST_F(QueueStream, MovesFillsAndAdds) {
  constexpr size_t kElements = 100003;
  std::vector<float> x(kElements), y(kElements), back(kElements);
  std::vector<uint16_t> narrow(kElements);
  std::vector<float> from(kElements);
  for (size_t i = 0; i < kElements; ++i) from[i] = static_cast<float>(i % 200);  // exact in bf16
  queue_.fill(view(x, DType::kF32), 0.5);
  queue_.from_host(view(y, DType::kF32), from.data());
  std::fill(from.begin(), from.end(), -1.0f);  // `from` may be reused on return
  queue_.add(view(y, DType::kF32), view(x, DType::kF32));
  queue_.add(view(y, DType::kF32), view(x, DType::kF32));
  queue_.copy(view(narrow, DType::kBf16), view(y, DType::kF32));
  queue_.copy(view(x, DType::kF32), view(narrow, DType::kBf16));
  queue_.to_host(back.data(), view(x, DType::kF32));  // `back` can be read on return
  for (size_t i = 0; i < kElements; ++i) ASSERT_EQ(back[i], static_cast<float>(i % 200 + 1)) << i;
}

TEST_F(QueueStream, HasOneThreadAndOpensNoOthers) {
  std::vector<float> large(1 << 22);
  int chosen = 0;
  const int before = test::threads_of_process();
  const std::unique_ptr<Backend> other = make_cpu_backend();
  Stream queue = other->make_queue_stream();
  queue.fill(view(large, DType::kF32), 1);
  queue.enqueue([&chosen] { chosen = cpu::cpu_threads(); });
  queue.synchronize();
  EXPECT_EQ(test::threads_of_process(), before + 1);
  EXPECT_EQ(chosen, 1);
}

TEST_F(QueueStream, RefusesOps) {
  std::vector<float> x(4, 1.0f);
  const auto [kind, message] =
      failure_of([&] { run(queue_, Activate{.y = view(x, DType::kF32), .x = view(x, DType::kF32)}); });
  EXPECT_EQ(kind, ErrorKind::kInternal);
  EXPECT_EQ(message, "activate: a queue stream moves memory and does no ops");
  EXPECT_NO_THROW(run(compute_, Activate{.y = view(x, DType::kF32), .x = view(x, DType::kF32)}));
}

TEST_F(QueueStream, EventsAreWaitedForAndNoMore) {
  Gate gate, after;
  std::atomic<bool> done{false};
  queue_.enqueue(gate.wait());
  queue_.enqueue([&] { done = true; });
  const Event event = queue_.record();
  queue_.enqueue(after.wait());
  std::thread opener([&] {
    gate.await_entry();
    std::this_thread::sleep_for(10ms);
    gate.open();
  });
  compute_.wait(event);  // waits for the event, not for work enqueued after it
  EXPECT_TRUE(done.load());
  opener.join();
  after.open();
  queue_.synchronize();  // must come before the gates are destroyed
}

TEST_F(QueueStream, WaitsForAnotherQueueStreamWithoutItsCaller) {
  Stream other = backend_->make_queue_stream();
  Gate gate;
  std::atomic<int> order{0};
  int first = 0, second = 0;
  queue_.enqueue(gate.wait());
  queue_.enqueue([&] { first = ++order; });
  other.wait(queue_.record());
  other.enqueue([&] { second = ++order; });
  gate.open();
  other.synchronize();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
}

TEST_F(QueueStream, EventsOfWorkThatIsDoneAtOnceAreNotWaitedFor) {
  const Event event = compute_.record();
  queue_.wait(event);
  queue_.wait(queue_.record());  // does nothing: the event is of this queue itself
  compute_.wait(Event{});
  queue_.synchronize();
  compute_.synchronize();
}

TEST_F(QueueStream, KeepsAnErrorAndDoesNothingMore) {
  Stream other = backend_->make_queue_stream();
  std::atomic<int> later{0};
  Gate gate;
  queue_.enqueue(gate.wait());
  queue_.enqueue([] { fail(ErrorKind::kComm, "a peer failed"); });
  queue_.enqueue([&] { ++later; });
  const Event event = queue_.record();
  other.wait(event);
  other.enqueue([&] { ++later; });
  gate.open();
  const std::pair<std::optional<ErrorKind>, std::string> wanted{ErrorKind::kComm, "a peer failed"};
  EXPECT_EQ(failure_of([&] { compute_.wait(event); }), wanted);
  EXPECT_EQ(failure_of([&] { other.synchronize(); }), wanted);
  EXPECT_EQ(failure_of([&] { queue_.enqueue([&] { ++later; }); }), wanted);
  EXPECT_EQ(failure_of([&] { queue_.synchronize(); }), wanted) << "again";
  EXPECT_EQ(later.load(), 0);
}

TEST_F(QueueStream, ThrowsAtOnceWhereWorkIsDoneAtOnce) {
  EXPECT_THROW(compute_.enqueue([] { throw std::runtime_error("no"); }), std::runtime_error);
  int done = 0;
  compute_.enqueue([&] { done = 1; });
  EXPECT_EQ(done, 1);
}

TEST_F(QueueStream, IsFinishedWithItsBackend) {
  int done = 0;
  {
    const std::unique_ptr<Backend> backend = make_cpu_backend();
    Stream queue = backend->make_queue_stream();
    for (int i = 0; i < 100; ++i) queue.enqueue([&] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

TEST_F(QueueStream, IsDrainedBeforeItsMemoryEnds) {
  std::atomic<int> done{0};
  {
    const Drain drain(queue_);
    for (int i = 0; i < 100; ++i) queue_.enqueue([&] { ++done; });
  }
  EXPECT_EQ(done.load(), 100);
  queue_.enqueue([&] { ++done; });  // the queue still works
  queue_.synchronize();
  EXPECT_EQ(done.load(), 101);
}

/// Work that waits forever unless told to give up.
struct Endless {
  std::promise<void> entered;
  std::atomic<bool> told{false};
  void put(Stream& stream) {
    stream.enqueue(
        [this] {
          entered.set_value();
          while (!told) std::this_thread::sleep_for(1ms);
        },
        [this] { told = true; });
  }
};

TEST_F(QueueStream, TellsWorkToGiveUpWhenAnErrorEndsItsOwner) {
  for (const bool with_backend : {false, true}) {
    Endless endless;
    std::atomic<int> later{0};
    const auto fail_with_work_left = [&] {
      const std::unique_ptr<Backend> backend = make_cpu_backend();
      Stream queue = backend->make_queue_stream();
      std::optional<Drain> drain;
      if (!with_backend) drain.emplace(queue);
      endless.put(queue);
      queue.enqueue([&] { ++later; });
      endless.entered.get_future().wait();
      fail(ErrorKind::kData, "a bad sample");
    };
    EXPECT_EQ(failure_of(fail_with_work_left).second, "a bad sample");
    EXPECT_TRUE(endless.told.load());
    EXPECT_EQ(later.load(), 0);
  }
}

TEST_F(QueueStream, ThatDroppedWorkSaysSo) {
  Endless endless;
  endless.put(queue_);
  endless.entered.get_future().wait();
  const Event event = queue_.record();
  queue_.finish(true);
  for (const auto& [kind, message] :
       {failure_of([&] { compute_.wait(event); }), failure_of([&] { queue_.synchronize(); })}) {
    EXPECT_EQ(kind, ErrorKind::kInternal);
    EXPECT_NE(message.find("dropped its work"), std::string::npos) << message;
  }
}

TEST_F(QueueStream, OfTheDryBackendDropsWork) {
  const std::unique_ptr<Backend> dry = make_dry_backend();
  Stream queue = dry->make_queue_stream();
  queue.enqueue([] { FAIL() << "done"; });
  queue.wait(queue.record());
  queue.synchronize();
  queue.finish(false);
}

}  // namespace
}  // namespace megalith
