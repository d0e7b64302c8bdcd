#include "libcore/train/step/optimizer.h"

#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/communicator.h"
#include "libcore/train/step/grad_buffer.h"

namespace megalith {
namespace {

ParallelConfig one_rank() {
  ParallelConfig parallel;
  parallel.finish();
  return parallel;
}

/// Five parameters whose sizes leave gaps: decayed, not decayed, frozen, tied to the first, decayed.
struct Fixture {
  Fixture() : stream(backend->make_stream()) {
    table.add({.name = "w",
               .global = {3, 5},
               .local = {},
               .init = Init::constant(1),
               .tie = {},
               .value = {},
               .grad = {}});
    table.add({.name = "b",
               .global = {7},
               .local = {},
               .init = Init::constant(2),
               .decay = false,
               .tie = {},
               .value = {},
               .grad = {}});
    table.add({.name = "frozen",
               .global = {4},
               .local = {},
               .init = Init::constant(3),
               .trainable = false,
               .tie = {},
               .value = {},
               .grad = {}});
    table.add({.name = "head",
               .global = {3, 5},
               .local = {},
               .init = Init::constant(1),
               .tie = "w",
               .value = {},
               .grad = {}});
    table.add({.name = "u",
               .global = {2, 2},
               .local = {},
               .init = Init::constant(4),
               .tie = {},
               .value = {},
               .grad = {}});
    store = std::make_unique<ParamStore>(table, stream);
    shards = std::make_unique<Shards>(*store, Sharding::kNone, 0, 1);
    initialize(table, stream, 1);
    grads = std::make_unique<GradBuffer>(table, *store, groups, *shards, Sharding::kNone, *backend);
  }
  std::vector<float> value(const char* name) {
    const View view = table.find(name)->value;
    std::vector<float> out(static_cast<size_t>(view.elements()));
    stream.to_host(out.data(), view);
    return out;
  }
  void set_grad(const char* name, double value_) { stream.fill(table.find(name)->grad, value_); }

  /// Does one update with gradient * grad_scale, or skips it.
  void step(Optimizer& optimizer, double learning_rate, double grad_scale, bool skip = false) {
    std::array<double, StepScalar::kCount> scalars{};
    scalars[StepScalar::kLearningRate] = learning_rate;
    scalars[StepScalar::kGradScale] = grad_scale;
    scalars[StepScalar::kSkip] = skip ? 1 : 0;
    const Optimizer::Corrections corrections = optimizer.corrections(optimizer.steps() + 1);
    scalars[StepScalar::kBiasCorrection1] = corrections.first;
    scalars[StepScalar::kBiasCorrection2] = corrections.second;
    optimizer.step(stream, *grads, View{scalars.data(), DType::kF64, {StepScalar::kCount}});
    if (!skip) optimizer.set_steps(optimizer.steps() + 1);
  }

  std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream;
  ParamTable table;
  std::unique_ptr<ParamStore> store;
  std::unique_ptr<Shards> shards;
  std::unique_ptr<Communicator> self = make_self_comm();
  Groups groups{Topology(one_rank(), 1), *self};
  std::unique_ptr<GradBuffer> grads;
};

// torch.optim.AdamW for one scalar, in fp64.
struct Reference {
  double x, m = 0, v = 0;
  void step(double gradient, double lr, double decay, int k) {
    const double b1 = 0.9, b2 = 0.95;
    x -= lr * decay * x;
    m = b1 * m + (1 - b1) * gradient;
    v = b2 * v + (1 - b2) * gradient * gradient;
    x -= lr / (1 - std::pow(b1, k)) * m / (std::sqrt(v / (1 - std::pow(b2, k))) + 1e-8);
  }
};

TEST(Optimizer, DecaysWhereItShouldAndSparesTheFrozen) {
  Fixture f;
  Optimizer optimizer(f.table, *f.store, *f.shards, f.stream,
                      {.beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1});
  Reference w{1}, b{2}, u{4};
  for (int k = 1; k <= 3; ++k) {
    f.set_grad("w", 0.5 * k);
    f.set_grad("b", -1);
    f.set_grad("u", 2);
    f.step(optimizer, 0.01, 0.25);
    f.step(optimizer, 0.5, 3, true);  // a skipped step changes nothing
    w.step(0.125 * k, 0.01, 0.1, k);
    b.step(-0.25, 0.01, 0, k);
    u.step(0.5, 0.01, 0.1, k);
  }
  EXPECT_EQ(optimizer.steps(), 3);
  for (float x : f.value("w")) EXPECT_NEAR(x, w.x, 1e-6);
  // "head" shares the memory of "w", which is updated once.
  for (float x : f.value("head")) EXPECT_NEAR(x, w.x, 1e-6);
  for (float x : f.value("b")) EXPECT_NEAR(x, b.x, 1e-6);
  for (float x : f.value("u")) EXPECT_NEAR(x, u.x, 1e-6);
  for (float x : f.value("frozen")) EXPECT_EQ(x, 3);
}

TEST(Optimizer, LeavesTheGapsZero) {
  Fixture f;
  Optimizer optimizer(f.table, *f.store, *f.shards, f.stream, {});
  f.set_grad("w", 1);
  f.step(optimizer, 0.1, 1);
  std::vector<float> flat(static_cast<size_t>(f.store->elements()));
  f.stream.to_host(flat.data(), f.store->values());
  double sum = 0;
  for (float x : flat) sum += x;
  double named = 0;
  for (const char* name : {"w", "b", "u"})
    for (float x : f.value(name)) named += x;
  EXPECT_NEAR(sum, named, 1e-9);
}

TEST(GradBuffer, TakesTheSquaresOfEachParameterOnce) {
  Fixture f;
  double sum = 1;  // the share of another rank, for example
  const View out{&sum, DType::kF64, {1}};
  f.set_grad("w", 1);   // 15 elements, also visible through "head"
  f.set_grad("b", -2);  // 7 elements
  f.set_grad("u", 3);   // 4 elements
  f.grads->finish(f.stream);
  f.grads->add_squares(f.stream, out);
  EXPECT_DOUBLE_EQ(sum, 1 + 15.0 + 28 + 36);
  f.grads->zero(f.stream);
  f.grads->add_squares(f.stream, out);
  EXPECT_DOUBLE_EQ(sum, 1 + 15.0 + 28 + 36);
}

}  // namespace
}  // namespace megalith
