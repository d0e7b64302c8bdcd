#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/parallel/devices/device_comm.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "libcore/train/step/trainer.h"
#include "tests/support/emulated_cuda.h"
#include "tests/train/run/tiny_run.h"

namespace megalith::test {

/// Ranks that train a tiny model, each on an emulated device of its own.
struct EmulatedTrainers {
  explicit EmulatedTrainers(const ParallelConfig& parallel) : config(tiny_config()) {
    config.model.layers = 4;
    config.parallel = parallel;
    config.parallel.world = parallel.tensor * parallel.data * parallel.context;
    config.train.device = "cuda";
    config.finish();
  }
  /// Runs `body` on each rank, whose devices work in this order.
  void run(unsigned order, const std::function<void(Trainer&, int rank)>& body) const {
    const OwnEmulatedGpus gpus(order, config.parallel.world);
    run_thread_ranks(config.parallel.world, {}, [&](Communicator& threads) {
      const std::unique_ptr<Backend> backend = make_cuda_backend(threads.rank());
      const std::unique_ptr<Communicator> world =
          make_device_comm(threads, *backend, {.in_rank_order = config.parallel.rank_order});
      RunShape shape{config.model, config.parallel, config.train};
      shape.vocabulary = gpu_vocabulary(size_t{1} << 30);
      if (logits_bytes > 0) shape.vocabulary.logits_bytes = logits_bytes;
      shape.gpu_cut = cut;
      Trainer trainer(shape, *backend, *world);
      trainer.initialize();
      body(trainer, threads.rank());
    });
  }
  static std::vector<float> read(Trainer& trainer, const View& view) {
    std::vector<float> values(static_cast<size_t>(view.elements()));
    trainer.stream().to_host(values.data(), view);
    return values;
  }
  struct Outcome {
    std::vector<double> losses;  // of the steps, and of an evaluation after them
    std::vector<float> values;
    std::vector<TraceLane> trace;
  };
  /// What rank 1 sees of two steps, after each of which `after_step` is called.
  Outcome train_two_steps(unsigned order, const std::function<void(Trainer&)>& after_step = {}) const {
    Outcome outcome;
    run(order, [&](Trainer& trainer, int rank) {
      trainer.set_traced(true);
      std::vector<double> losses;
      for (int step = 0; step < 2; ++step) {
        losses.push_back(trainer.step(tiny_sample, 4 * step, 1e-2).loss);
        if (after_step) after_step(trainer);
      }
      losses.push_back(trainer.evaluate(tiny_sample, 100));
      trainer.check_memory();
      const std::vector<float> values = read(trainer, trainer.store().values());
      if (rank == 1) outcome = {losses, values, trainer.take_trace()};
    });
    return outcome;
  }

  PretrainConfig config;
  ExchangeCut cut = kGpuExchangeCut;
  int64_t logits_bytes = 0;  // VocabularyForm::logits_bytes; 0: that of a small GPU
};

/// The spans of a lane whose names start so.
inline std::vector<SpanLog::Span> spans_of(const std::vector<TraceLane>& trace, const std::string& lane,
                                           const std::string& start) {
  std::vector<SpanLog::Span> spans;
  for (const TraceLane& one : trace)
    for (const SpanLog::Span& span : one.spans)
      if (one.name == lane && span.name.starts_with(start)) spans.push_back(span);
  return spans;
}

/// How many pairs of a span of `a` and one of `b` have a time in common.
inline int pairs_at_once(const std::vector<SpanLog::Span>& a, const std::vector<SpanLog::Span>& b) {
  int count = 0;
  for (const SpanLog::Span& one : a)
    for (const SpanLog::Span& other : b) count += one.begin < other.end && other.begin < one.end;
  return count;
}

}  // namespace megalith::test
