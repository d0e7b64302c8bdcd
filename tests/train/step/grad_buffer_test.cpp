// Tests that work waits for the sums of gradients. The values of the sums are tested in layouts_test and
// gradients_test.
#include "libcore/train/step/grad_buffer.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "libcore/train/step/trainer.h"
#include "tests/train/run/layouts.h"
#include "tests/train/run/tiny_run.h"
#include "tests/train/step/emulated_trainers.h"

namespace megalith {
namespace {

/// A communicator whose reduce-scatter begins later, by `late`, than its turn on the stream.
class LateComm final : public Communicator {
 public:
  LateComm(Communicator& inner, std::chrono::milliseconds late) : inner_(&inner), late_(late) {}
  LateComm(std::unique_ptr<Communicator> own, std::chrono::milliseconds late)
      : own_(std::move(own)), inner_(own_.get()), late_(late) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }
  void all_reduce(Stream& s, View view, Reduce reduce) override { inner_->all_reduce(s, view, reduce); }
  void all_gather(Stream& s, View out, ConstView mine) override { inner_->all_gather(s, out, mine); }
  void reduce_scatter(Stream& s, View mine, ConstView in, Reduce reduce) override {
    s.enqueue([late = late_] { std::this_thread::sleep_for(late); }, nullptr);
    inner_->reduce_scatter(s, mine, in, reduce);
  }
  void all_to_all(Stream& s, View out, ConstView in) override { inner_->all_to_all(s, out, in); }
  void broadcast(Stream& s, View view, int root) override { inner_->broadcast(s, view, root); }
  void gather_parts(Stream& s, View whole, const Places& places) override {
    inner_->gather_parts(s, whole, places);
  }
  void reduce_parts(Stream& s, View whole, Reduce reduce, const Places& places) override {
    inner_->reduce_parts(s, whole, reduce, places);
  }
  void set_send_slots(View memory, int slots) override { inner_->set_send_slots(memory, slots); }
  void send(Stream& s, ConstView view, int peer) override { inner_->send(s, view, peer); }
  void recv(Stream& s, View view, int peer) override { inner_->recv(s, view, peer); }
  std::vector<std::string> exchange(std::string_view mine) override { return inner_->exchange(mine); }
  std::unique_ptr<Communicator> split(const GroupName& name, int color, int key) override {
    return std::make_unique<LateComm>(inner_->split(name, color, key), late_);
  }
  void abort(const std::string& why) override { inner_->abort(why); }

 private:
  std::unique_ptr<Communicator> own_;
  Communicator* inner_;
  std::chrono::milliseconds late_;
};

/// The losses of three steps with two data-parallel ranks under ZeRO-2 and four microbatches per rank.
std::vector<double> losses(const test::Family& family, int buckets, std::chrono::milliseconds late) {
  PretrainConfig config = test::tiny_config();
  config.model.layers = 4;
  test::set_family(config.model, family);
  config.model.heads = 4;
  config.model.ffn_hidden = 64;
  config.train.micro_batch = 1;
  config.train.global_batch = 8;
  config.finish();
  config = test::shared(config, {.name = "", .data = 2, .sharding = Sharding::kGradients});
  config.parallel.bucket_size.reset();
  config.parallel.bucket_count = buckets;
  std::vector<double> of_rank_0;
  run_thread_ranks(2, {}, [&](Communicator& world) {
    set_cpu_threads(1);
    const std::unique_ptr<Backend> backend = make_cpu_backend();
    LateComm late_world(world, late);
    Trainer trainer({config.model, config.parallel, config.train}, *backend, late_world);
    trainer.initialize();
    for (int step = 0; step < 3; ++step) {
      const double loss = trainer.step(test::tiny_sample, 8 * step, 1e-2).loss;
      if (world.rank() == 0) of_rank_0.push_back(loss);
    }
  });
  return of_rank_0;
}

// Buckets use two windows in turn. If their number is odd, the last bucket of a microbatch has the same
// window as the first bucket of the next one, to which the head writes already in the forward pass. That must
// wait, so late sums must not change the losses.
TEST(GradBuffer, NoGradientsAreMadeWhereAnothersAreBeingSummed) {
  for (const test::Family& family : {test::kGpt2, test::kLlama})
    for (const int buckets : {1, 2, 3, 4, 6})
      EXPECT_EQ(losses(family, buckets, std::chrono::milliseconds(3)),
                losses(family, buckets, std::chrono::milliseconds(0)))
          << family.name << ", buckets " << buckets;
}

// A unit is a bucket. The sums of the head and of the last three layers begin while the backward pass goes on
// to the layers before them.
TEST(GradBuffer, SumsBesideTheBackwardPassOnDevices) {
  ParallelConfig parallel;
  parallel.data = 2;
  parallel.bucket_size = 1;
  for (const unsigned order : {1U, 2U, 3U}) {
    const std::vector<TraceLane> trace = test::EmulatedTrainers(parallel).train_two_steps(order).trace;
    EXPECT_GE(test::pairs_at_once(test::spans_of(trace, "gradient buckets", "bucket of units "),
                                  test::spans_of(trace, "compute", "B0.")),
              2 * 4)
        << order;
  }
}

}  // namespace
}  // namespace megalith
