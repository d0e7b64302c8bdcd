// The gather of parameters beside the next forward pass: its order, what waits for it, and that it changes no
// bit.
#include "libcore/train/step/param_gather.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/model/embedding.h"
#include "tests/support/tiny_model.h"
#include "tests/train/step/emulated_trainers.h"

namespace megalith {
namespace {

/// A group of two that only gathers, when its test lets it.
class GatedComm final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  const std::string& name() const override { return name_; }
  void all_gather(Stream& stream, View out, ConstView mine) override {
    EXPECT_EQ(2 * mine.elements(), out.elements());
    EXPECT_EQ(mine.data, out.data) << "rank 0's part is the first";
    stream.enqueue([this, out] {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, std::chrono::seconds(20), [this] { return allowed_ > sent_.size(); }))
        ADD_FAILURE() << "gather " << sent_.size() << " was never allowed: what it follows waits for it";
      sent_.push_back(out);
    });
  }
  void all_reduce(Stream&, View, Reduce) override { refuse(); }
  void reduce_scatter(Stream&, View, ConstView, Reduce) override { refuse(); }
  void all_to_all(Stream&, View, ConstView) override { refuse(); }
  void broadcast(Stream&, View, int) override { refuse(); }
  void gather_parts(Stream&, View, const Places&) override { refuse(); }
  void reduce_parts(Stream&, View, Reduce, const Places&) override { refuse(); }
  void set_send_slots(View, int) override { refuse(); }
  void send(Stream&, ConstView, int) override { refuse(); }
  void recv(Stream&, View, int) override { refuse(); }
  std::vector<std::string> exchange(std::string_view) override { refuse(); }
  std::unique_ptr<Communicator> split(const GroupName&, int, int) override { refuse(); }
  void abort(const std::string&) override { refuse(); }

  /// Lets this many gathers of all end.
  void allow(size_t gathers) {
    const std::lock_guard lock(mutex_);
    allowed_ = gathers;
    changed_.notify_all();
  }
  /// The tensors that have been gathered.
  std::vector<View> sent() {
    const std::lock_guard lock(mutex_);
    return sent_;
  }

 private:
  [[noreturn]] static void refuse() { fail(ErrorKind::kInternal, "the test expects gathers only"); }
  const std::string name_ = "gated";
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  size_t allowed_ = 0;
  std::vector<View> sent_;
};

/// The parameters of a model of three layers, each unit of which is a bucket, and their gather.
struct GatheredModel {
  explicit GatheredModel(const ModelConfig& config)
      : stage(config, {.count = 3}, {}, table),
        store(table, compute, {.shards = 2, .bucket = 1, .alone = config.untied_head ? "" : kWordEmbeddings}),
        shards(store, Sharding::kOptimizer, 0, 2),
        gather(table, store, shards, comm, queue) {}
  /// The number of the gather that sends this parameter.
  size_t place_of(const std::string& name) {
    const std::vector<View> sent = comm.sent();
    const auto* const data = table.find(name)->value.as<const std::byte>();
    const auto holds = [&](const View& view) {
      return view.as<const std::byte>() <= data && data < view.as<const std::byte>() + view.bytes();
    };
    return static_cast<size_t>(std::find_if(sent.begin(), sent.end(), holds) - sent.begin());
  }

  std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream compute = backend->make_stream(), queue = backend->make_queue_stream();
  ParamTable table;
  Stage stage;
  ParamStore store;
  Shards shards;
  GatedComm comm;
  ParamGather gather;
  Drain drain{queue};
};

std::string layer_norm(int layer) {
  return concat("decoder.layers.", layer, ".input_layernorm.weight");
}

TEST(ParamGather, SendsInTheOrderOfAForwardPass) {
  for (const ModelConfig& config : {test::tiny_gpt2(), test::tiny_llama()}) {
    GatheredModel model(config);
    model.comm.allow(model.store.buckets().size());
    model.gather.begin(model.compute);
    model.gather.finish(model.compute);
    EXPECT_EQ(model.comm.sent().size(), model.store.buckets().size());
    EXPECT_LT(model.place_of(kWordEmbeddings), model.place_of(layer_norm(0)));
    for (int layer = 0; layer < 2; ++layer)
      EXPECT_LT(model.place_of(layer_norm(layer)), model.place_of(layer_norm(layer + 1)));
    EXPECT_LT(model.place_of(layer_norm(2)), model.place_of("decoder.final_layernorm.weight"));
    EXPECT_EQ(model.place_of("decoder.final_layernorm.weight"), model.store.buckets().size() - 1);
  }
}

TEST(ParamGather, AUnitWaitsForItsOwnParametersAlone) {
  GatheredModel model(test::tiny_llama());  // units: the embedding, three blocks, the head
  model.gather.begin(model.compute);
  for (int unit = 0; unit < 5; ++unit) {
    model.comm.allow(static_cast<size_t>(unit) + 1);
    model.gather.unit_begins(model.compute, unit);
    EXPECT_EQ(model.comm.sent().size(), static_cast<size_t>(unit) + 1);
    model.gather.unit_begins(model.compute, unit);  // again, in the next microbatch
  }
  model.gather.finish(model.compute);
}

/// Two ranks that train on emulated devices, with a bucket for each unit.
struct TwoDevices : test::EmulatedTrainers {
  explicit TwoDevices(Sharding sharding) : EmulatedTrainers(layout_of(sharding)) {}
  static ParallelConfig layout_of(Sharding sharding) {
    ParallelConfig parallel;
    parallel.data = 2;
    parallel.sharding = sharding;
    parallel.bucket_size = 1;
    return parallel;
  }
  /// What rank 1 sees of two steps. `waits`: each step ends when all its parameters are there.
  Outcome train(unsigned order, bool waits) const {
    return train_two_steps(order, [waits](Trainer& trainer) {
      if (waits) trainer.params();
    });
  }
};

/// How many pairs of a gather and a pass have a time in common.
int gathers_beside_passes(const std::vector<TraceLane>& trace) {
  return test::pairs_at_once(test::spans_of(trace, "gradient buckets", "gather parameters of units "),
                             test::spans_of(trace, "compute", "F0."));
}

// Devices do their work in three orders, as late as events allow: what read a parameter before its event
// would read the value of the step before, at least of the half that the other rank updates.
TEST(GatherOnDevices, RunsBesideTheNextForwardPassAndChangesNoBit) {
  const TwoDevices devices(Sharding::kOptimizer);
  const TwoDevices::Outcome expected = devices.train(1, true);
  EXPECT_EQ(gathers_beside_passes(expected.trace), 0);
  for (const unsigned order : {1U, 2U, 3U}) {
    const TwoDevices::Outcome got = devices.train(order, false);
    EXPECT_GT(gathers_beside_passes(got.trace), 0) << order;
    EXPECT_EQ(got.losses, expected.losses) << order;
    EXPECT_EQ(got.values, expected.values) << order;
  }
}

TEST(GatherOnDevices, ChangesNoBitWhereGradientsAreShardedToo) {
  const TwoDevices devices(Sharding::kGradients);
  const TwoDevices::Outcome expected = devices.train(1, true), got = devices.train(2, false);
  EXPECT_EQ(got.losses, expected.losses);
  EXPECT_EQ(got.values, expected.values);
}

// Each rank has updated its half, and both read all.
TEST(GatherOnDevices, IsAwaitedByWhatReadsParametersOtherwise) {
  const std::function<void(Trainer&)> ways[] = {[](Trainer& trainer) { trainer.params(); },
                                                [](Trainer& trainer) { trainer.store(); },
                                                [](Trainer& trainer) { trainer.stage(); }};
  const TwoDevices devices(Sharding::kOptimizer);
  for (const unsigned order : {1U, 2U, 3U}) {
    std::vector<std::vector<float>> seen[2];
    devices.run(order, [&](Trainer& trainer, int rank) {
      const View values = trainer.store().values();
      for (const auto& way : ways) {
        trainer.step(test::tiny_sample, 0, 1e-2);
        way(trainer);
        seen[rank].push_back(TwoDevices::read(trainer, values));
      }
    });
    EXPECT_EQ(seen[0], seen[1]) << order;
  }
}

}  // namespace
}  // namespace megalith
