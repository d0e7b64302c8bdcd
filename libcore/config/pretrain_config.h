#pragma once

#include "libcore/config/checkpoint_config.h"
#include "libcore/config/data_config.h"
#include "libcore/config/model_config.h"
#include "libcore/config/parallel_config.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/config/train_config.h"
#include "libcore/options/cli.h"

namespace megalith {

/// All settings of a training run.
struct PretrainConfig {
  ModelConfig model;
  ParallelConfig parallel;
  TrainConfig train;
  DataConfig data;
  TokenizerConfig tokenizer;
  CheckpointConfig checkpoint;

  template <class V>
  void fields(V&& v) {
    model.fields(v);
    parallel.fields(v);
    train.fields(v);
    data.fields(v);
    tokenizer.fields(v);
    checkpoint.fields(v);
  }
  /// Adds the groups "Model", "Parallelism", "Training", "Data", "Tokenizer" and "Checkpoints", and the rules
  /// between them.
  void add_to(Options&);
  /// finish() and validate() call those of the groups and apply the rules between them. For a config that was
  /// not filled from options.
  void finish();
  void validate(Problems&) const;

 private:
  void validate_together(Problems&) const;  // the rules between the groups
};

extern template std::vector<Field> fields_of<PretrainConfig>(PretrainConfig&);

}  // namespace megalith
