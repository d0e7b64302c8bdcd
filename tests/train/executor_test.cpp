#include "libcore/train/executor.h"

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/model/param_store.h"
#include "libcore/ops/backend.h"
#include "libcore/parallel/thread_comm.h"
#include "libcore/parallel/topology.h"
#include "libcore/train/batch.h"
#include "libcore/train/memory.h"
#include "tests/train/tiny_run.h"

namespace megalith {
namespace {

using test::tiny_config;
using test::tiny_sample;

using Gradients = std::map<std::string, std::vector<float>>;
struct Outcome {
  double loss = 0;
  Gradients gradients;
  size_t tape_peak = 0, tape_planned = 0;
};

/// One direction of a pipeline, with room for every message of a step.
struct Link {
  Link(Communicator& world, const char* name, const ExecutorSize& size, int messages)
      : memory(static_cast<size_t>(size.boundary.elements() * messages)),
        comm(world.split(name, 0, world.rank())) {
    comm->set_send_slots({memory.data(), DType::kF32, {static_cast<int64_t>(memory.size())}}, messages);
  }
  std::vector<float> memory;
  std::unique_ptr<Communicator> comm;
};

/// One training step of a pipeline rank without an update.
Outcome run_rank(const PretrainConfig& config, Communicator& world) {
  const int ranks = config.parallel.pipeline, rank = world.rank();
  const int chunks =
      config.parallel.layers_per_chunk ? config.model.layers / ranks / *config.parallel.layers_per_chunk : 1;
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  const Topology topology(config.parallel, ranks);
  const RunMemory memory = run_memory(config.model, config.parallel, config.train, rank);

  ParamTable params;
  std::vector<Stage> stages;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const LayerRange range = topology.stage_layers(config.model.layers, rank, chunk, chunks);
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

  const int messages = shape.microbatches * chunks;
  const Link forward(world, "forward", memory.executor, messages),
      backward(world, "backward", memory.executor, messages);
  Executor executor(
      stages, {.rank = rank, .ranks = ranks, .forward = forward.comm.get(), .backward = backward.comm.get()},
      memory.executor, *backend);
  const auto self = make_self_comm();
  const Region region(*self);
  Outcome outcome;
  outcome.loss =
      executor.run({.compute = stream, .tp = region, .scratch = scratch, .key = {.seed = 5}},
                   plan_pipeline(rank, ranks, chunks, shape.microbatches, ranks), batch.microbatches());
  outcome.tape_peak = executor.tape_peak();
  outcome.tape_planned = memory.executor.tape;
  for (const Param& param : params.all()) {
    std::vector<float>& gradient = outcome.gradients[param.name];
    gradient.resize(static_cast<size_t>(param.grad.elements()));
    stream.to_host(gradient.data(), param.grad);
  }
  return outcome;
}

/// The step of all ranks.
std::vector<Outcome> run_pipeline(const PretrainConfig& config) {
  std::vector<Outcome> outcomes(static_cast<size_t>(config.parallel.pipeline));
  run_thread_ranks(config.parallel.pipeline, {}, [&](Communicator& world) {
    outcomes[static_cast<size_t>(world.rank())] = run_rank(config, world);
  });
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
    executor.run({.compute = stream, .tp = region, .scratch = scratch}, plan, batch.microbatches());
  };
  EXPECT_NO_THROW(walk({{Step::kForward, 0, 0}, {Step::kBackward, 0, 0}}));
  EXPECT_THROW(walk({{Step::kBackward, 0, 0}}), Error);                         // nothing to go back from
  EXPECT_THROW(walk({{Step::kForward, 0, 0}, {Step::kForward, 0, 1}}), Error);  // one tape is planned
}

}  // namespace
}  // namespace megalith
