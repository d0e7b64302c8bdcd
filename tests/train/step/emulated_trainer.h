#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libcore/parallel/communicator.h"
#include "libcore/train/step/trainer.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/tiny_model.h"
#include "tests/train/run/tiny_run.h"
#include "tests/train/step/emulated_trainers.h"

namespace megalith::test {

/// A tiny model that one rank trains on an emulated device.
struct EmulatedTrainer {
  explicit EmulatedTrainer(const PretrainConfig& config, unsigned order = 1)
      : EmulatedTrainer(shape_of(config), order) {}
  explicit EmulatedTrainer(const RunShape& shape, unsigned order = 1)
      : gpus(order), trainer(shape, *backend, *world) {
    trainer.initialize();
  }
  static RunShape shape_of(const PretrainConfig& config) {
    RunShape shape = run_shape(config);
    shape.train.device = "cuda";
    shape.vocabulary = gpu_vocabulary(size_t{1} << 30);
    return shape;
  }
  std::vector<float> values() { return EmulatedTrainers::read(trainer, trainer.store().values()); }

  OwnEmulatedGpus gpus;
  std::unique_ptr<Backend> backend = make_emulated_backend();
  std::unique_ptr<Communicator> world = make_self_comm();
  Trainer trainer;
};

/// tiny_config() with three micro-batches in a step, for GPT-2 with dropout, or for a LLaMA.
inline PretrainConfig three_microbatches(bool llama = false) {
  PretrainConfig config = tiny_config();
  if (llama) {
    const int length = config.model.seq_length;
    config.model = tiny_llama();
    config.model.vocab_size = kTinyVocab;
    config.model.seq_length = length;
  }
  config.train.global_batch = 6;
  config.finish();
  return config;
}

/// Samples whose masks leave out other labels in each sample.
inline void sample_with_gaps(int64_t index, const SampleView& out) {
  tiny_sample(index, out);
  for (size_t i = 0; i < out.loss_mask.size(); ++i)
    if ((static_cast<size_t>(index) + i) % 4 == 0) out.loss_mask[i] = 0;
}

}  // namespace megalith::test
