#pragma once

#include <cstdint>
#include <string>

#include "libcore/config/pretrain_config.h"
#include "libcore/text/tokenizer.h"
#include "libcore/train/batch.h"

namespace megalith {

/// One split. Empty (size 0): there is none.
struct DataSet {
  SampleReader read = {};
  int64_t size = 0;  // samples
};
struct DataSets {
  DataSet train, valid, test;
};

struct PretrainResult {
  int64_t iteration = 0;   // steps done, earlier runs' included
  std::string stopped_by;  // the signal that ended the run early; empty: none did
  bool saved = false;      // the state at `iteration` is in --save
};

/// Trains a model as `config` (complete: finish() and validate() done) says, from scratch or from the latest
/// checkpoint of
/// --load: steps, evaluations, samples, checkpoints, log lines with Megatron's wording on the log,
/// TensorBoard, JSON lines. `tokenizer` may be null when no sample text is asked for. Throws what its parts
/// throw; kUsage when the machine's memory is too small or the checkpoint does not fit the options, kData
/// when loss or gradient stay not finite.
PretrainResult train(const PretrainConfig& config, const DataSets&, const Tokenizer* tokenizer);

}  // namespace megalith
