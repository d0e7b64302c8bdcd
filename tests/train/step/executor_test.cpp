#include "libcore/train/step/executor.h"

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/model/param_store.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "libcore/parallel/topology.h"
#include "libcore/train/step/batch.h"
#include "libcore/train/step/memory.h"
#include "tests/train/run/tiny_run.h"

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

RunShape shape_of(const PretrainConfig& config) {
  return {config.model, config.parallel, config.train};
}

/// Runs one training step of a pipeline rank, without the update.
Outcome run_rank(const PretrainConfig& config, Communicator& world) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  const RunShape run = shape_of(config);
  const Topology topology(run.parallel, world.size());
  const RunMemory memory = run_memory(run, topology.coord(world.rank()));
  Arena links = make_arena(*backend, "pipeline links", memory.links);
  Groups groups(topology, world);

  ParamTable params;
  const std::vector<Stage> stages = make_stages(run, groups.at, params);
  const ParamStore store(params, stream);
  initialize(params, stream, 5);

  Arena batch_arena = make_arena(*backend, "batch", memory.batch),
        scratch = make_arena(*backend, "scratch", memory.scratch);
  Batch batch(batch_arena, batch_shape(run));
  batch.load(stream, tiny_sample, 8);

  Executor executor(stages,
                    {.rank = groups.at.pipeline,
                     .ranks = run.parallel.pipeline,
                     .forward = groups.forward.get(),
                     .backward = groups.backward.get()},
                    memory.executor, links, *backend);
  const auto self = make_self_comm();
  const Region region(*self);
  Outcome outcome;
  executor.run({.compute = stream, .tp = region, .scratch = scratch, .key = {.seed = 5}},
               training_plan(run, groups.at.pipeline, batch_shape(run).microbatches), batch.microbatches(),
               View{&outcome.loss, DType::kF64, {1}});
  outcome.tape_peak = executor.tape_peak();
  outcome.tape_planned = memory.executor.tape;
  for (const Param& param : params.all()) {
    std::vector<float>& gradient = outcome.gradients[param.name];
    gradient.resize(static_cast<size_t>(param.grad.elements()));
    stream.to_host(gradient.data(), param.grad);
  }
  return outcome;
}

/// Runs the step on all ranks.
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
  config.model.untied_head = true;  // for a tied head, the gradients of both ends would have to be added
  config.parallel = {};
  config.parallel.pipeline = ranks;
  config.parallel.layers_per_chunk = layers_per_chunk;
  config.parallel.finish();
  config.train.global_batch = config.train.micro_batch * microbatches;
  return config;
}

// No bit may differ from one rank: every stage sees the microbatches in the same order, and dropout masks
// depend only on the position.
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
  const RunMemory memory = run_memory(shape_of(config));
  ParamTable params;
  std::vector<Stage> stages;
  stages.emplace_back(config.model, Layers{.first = 0, .count = 2}, TensorSplit{}, params);
  const ParamStore store(params, stream);
  Arena arena = make_arena(*backend, "batch", memory.batch),
        scratch = make_arena(*backend, "scratch", memory.scratch);
  Batch batch(arena, batch_shape(shape_of(config)));
  batch.load(stream, tiny_sample, 0);
  const auto self = make_self_comm();
  const Region region(*self);
  const auto walk = [&](std::vector<Step> plan) {
    Arena links = make_arena(*backend, "pipeline links", 0);
    Executor executor(stages, {}, memory.executor, links, *backend);
    double loss = 0;
    executor.run({.compute = stream, .tp = region, .scratch = scratch}, plan, batch.microbatches(),
                 {&loss, DType::kF64, {1}});
  };
  EXPECT_NO_THROW(walk({{Step::kForward, 0, 0}, {Step::kBackward, 0, 0}}));
  EXPECT_THROW(walk({{Step::kBackward, 0, 0}}), Error);  // a backward pass without a forward pass
  // Needs two tapes, but one is planned.
  EXPECT_THROW(walk({{Step::kForward, 0, 0}, {Step::kForward, 0, 1}}), Error);
}

}  // namespace
}  // namespace megalith
