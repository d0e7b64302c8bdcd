#include "libcore/train/executor.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/model/param_store.h"
#include "libcore/ops/backend.h"
#include "libcore/parallel/stage_table.h"
#include "libcore/train/batch.h"
#include "libcore/train/memory.h"
#include "tests/train/tiny_run.h"

namespace megalith {
namespace {

using test::tiny_config;
using test::tiny_sample;

/// Messages between the threads of this test, first in, first out for each pair of ranks.
class Mail {
 public:
  void put(int from, int to, std::vector<std::byte> message) {
    const std::lock_guard lock(mutex_);
    queues_[{from, to}].push_back(std::move(message));
    arrived_.notify_all();
  }
  std::vector<std::byte> take(int from, int to) {
    std::unique_lock lock(mutex_);
    auto& queue = queues_[{from, to}];
    if (!arrived_.wait_for(lock, std::chrono::seconds(60), [&] { return !queue.empty(); }))
      fail(ErrorKind::kComm, "rank ", to, " waits for rank ", from);
    std::vector<std::byte> message = std::move(queue.front());
    queue.pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> queues_;
};

/// One direction of a pipeline. Only send and receive are asked of it.
class MailComm final : public Communicator {
 public:
  MailComm(Mail& mail, int rank, int size) : mail_(mail), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void send(Stream&, ConstView view, int peer) override {
    const auto* bytes = static_cast<const std::byte*>(view.data);
    mail_.put(rank_, peer, {bytes, bytes + view.bytes()});
  }
  void recv(Stream&, View view, int peer) override {
    const std::vector<std::byte> message = mail_.take(peer, rank_);
    if (message.size() != view.bytes())
      fail(ErrorKind::kComm, "got ", message.size(), " bytes, wanted ", view.bytes());
    std::memcpy(view.data, message.data(), message.size());
  }
  void all_reduce(Stream&, View, Reduce) override { unexpected(); }
  void all_gather(Stream&, View, ConstView) override { unexpected(); }
  void reduce_scatter(Stream&, View, ConstView, Reduce) override { unexpected(); }
  void all_to_all(Stream&, View, ConstView) override { unexpected(); }
  void broadcast(Stream&, View, int) override { unexpected(); }
  std::unique_ptr<Communicator> split(int, int) override { unexpected(); }
  void abort(const std::string&) override {}

 private:
  [[noreturn]] static void unexpected() { fail(ErrorKind::kInternal, "only send and receive are expected"); }

  Mail& mail_;
  int rank_, size_;
};

using Gradients = std::map<std::string, std::vector<float>>;
struct Outcome {
  double loss = 0;
  Gradients gradients;
  size_t tape_peak = 0, tape_planned = 0;
};

/// One training step of pipeline rank `rank` without an update.
Outcome run_rank(const PretrainConfig& config, int rank, Mail& forward, Mail& backward) {
  const int ranks = config.parallel.pipeline;
  const StageTable table(config.model.layers, config.parallel);
  const int chunks = table.chunks();
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  const RunMemory memory = run_memory(config.model, config.parallel, config.train, rank);

  ParamTable params;
  std::vector<Stage> stages;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const LayerRange range = table.range(rank, chunk);
    stages.emplace_back(config.model,
                        Layers{.first = range.first,
                               .count = range.count,
                               .embedding = range.first == 0,
                               .head = range.first + range.count == config.model.layers},
                        TensorSplit{}, params);
  }
  const ParamStore store(params, stream);
  initialize(params, stream, 5);
  store.zero_grads(stream);

  const BatchShape shape = batch_shape(config.model, config.parallel, config.train);
  Arena batch_arena = make_arena(*backend, "batch", memory.batch),
        scratch = make_arena(*backend, "scratch", memory.scratch);
  Batch batch(batch_arena, shape);
  batch.load(stream, tiny_sample, 8);

  MailComm forward_link(forward, rank, ranks), backward_link(backward, rank, ranks);
  Executor executor(stages,
                    {.rank = rank, .ranks = ranks, .forward = &forward_link, .backward = &backward_link},
                    memory.executor, *backend);
  const auto self = make_self_comm();
  const Region region(*self);
  Outcome outcome;
  executor.run({.compute = stream, .tp = region, .scratch = scratch, .key = {.seed = 5}},
               plan_pipeline(rank, ranks, chunks, shape.microbatches, ranks), batch.microbatches(),
               {&outcome.loss, DType::kF64, {1}});
  outcome.tape_peak = executor.tape_peak();
  outcome.tape_planned = memory.executor.tape;
  for (const Param& param : params.all()) {
    std::vector<float>& gradient = outcome.gradients[param.name];
    gradient.resize(static_cast<size_t>(param.grad.elements()));
    stream.to_host(gradient.data(), param.grad);
  }
  return outcome;
}

/// The step of all ranks, a thread each.
std::vector<Outcome> run_pipeline(const PretrainConfig& config) {
  Mail forward, backward;
  std::vector<Outcome> outcomes(static_cast<size_t>(config.parallel.pipeline));
  std::vector<std::string> errors(outcomes.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < config.parallel.pipeline; ++rank)
    threads.emplace_back([&, rank] {
      const auto i = static_cast<size_t>(rank);
      try {
        outcomes[i] = run_rank(config, rank, forward, backward);
      } catch (const Error& error) {
        errors[i] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  return outcomes;
}

PretrainConfig config_of(int ranks, std::optional<int> layers_per_chunk, int microbatches) {
  PretrainConfig config = tiny_config();
  config.model.layers = 4;
  config.model.untied_head = true;  // ranks that share the word embedding would have to add up its gradients
  config.parallel = {};
  config.parallel.pipeline = ranks;
  config.parallel.layers_per_chunk = layers_per_chunk;
  config.parallel.finish();
  config.train.global_batch = config.train.micro_batch * microbatches;
  return config;
}

// Every stage sees the microbatches in the same order as one rank does, and dropout masks are a function of
// place: no bit differs.
TEST(Executor, GivesTheSameGradientsInAPipeline) {
  for (const auto& [ranks, per_chunk, microbatches] : {std::tuple{2, std::optional<int>{}, 5},
                                                       {4, std::optional<int>{}, 3},
                                                       {2, std::optional<int>{1}, 4}}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(microbatches) + " microbatches");
    const Outcome whole = run_pipeline(config_of(1, {}, microbatches))[0];
    ASSERT_GT(whole.loss, 3);
    const std::vector<Outcome> parts = run_pipeline(config_of(ranks, per_chunk, microbatches));
    size_t gradients = 0;
    for (size_t rank = 0; rank < parts.size(); ++rank) {
      EXPECT_EQ(parts[rank].loss, rank + 1 == parts.size() ? whole.loss : 0);
      EXPECT_EQ(parts[rank].tape_peak, parts[rank].tape_planned);
      for (const auto& [name, gradient] : parts[rank].gradients)
        EXPECT_EQ(gradient, whole.gradients.at(name)) << name << " on rank " << rank;
      gradients += parts[rank].gradients.size();
    }
    EXPECT_EQ(gradients, whole.gradients.size());
  }
}

TEST(Executor, NamesAPlanThatItCannotWalk) {
  const PretrainConfig config = tiny_config();
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  const RunMemory memory = run_memory(config.model, config.parallel, config.train);
  ParamTable params;
  std::vector<Stage> stages;
  stages.emplace_back(config.model, Layers{.first = 0, .count = 2}, TensorSplit{}, params);
  const ParamStore store(params, stream);
  Arena arena = make_arena(*backend, "batch", memory.batch),
        scratch = make_arena(*backend, "scratch", memory.scratch);
  Batch batch(arena, batch_shape(config.model, config.parallel, config.train));
  batch.load(stream, tiny_sample, 0);
  const auto self = make_self_comm();
  const Region region(*self);
  const auto walk = [&](std::vector<Step> plan) {
    Executor executor(stages, {}, memory.executor, *backend);
    double loss = 0;
    executor.run({.compute = stream, .tp = region, .scratch = scratch}, plan, batch.microbatches(),
                 {&loss, DType::kF64, {1}});
  };
  EXPECT_NO_THROW(walk({{Step::kForward, 0, 0}, {Step::kBackward, 0, 0}}));
  EXPECT_THROW(walk({{Step::kBackward, 0, 0}}), Error);                         // nothing to go back from
  EXPECT_THROW(walk({{Step::kForward, 0, 0}, {Step::kForward, 0, 1}}), Error);  // one tape is planned
}

}  // namespace
}  // namespace megalith
