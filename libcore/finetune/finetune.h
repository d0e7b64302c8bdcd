#pragma once

#include <memory>
#include <optional>
#include <string>

#include "libcore/convert/sources/model_source.h"
#include "libcore/finetune/finetune_config.h"
#include "libcore/finetune/record_files.h"
#include "libcore/finetune/tuning_data.h"
#include "libcore/train/run/pretrain.h"

namespace megalith {

/// The records of a run, in the form in which the model reads them.
struct TuningSets {
  std::unique_ptr<RecordFiles> records;              // reads the records
  std::unique_ptr<Examples> train;                   // empty if nothing is trained
  std::unique_ptr<Examples> dev;                     // null: there is nothing to evaluate on
  std::unique_ptr<TuningData> train_data, dev_data;  // created from train and dev; null: not needed
  int64_t answer_tokens = 0;  // maximum number of tokens of an answer for --do-generation

  /// The data sets of a run of `steps` steps. They refer to this object. With `pairs`, each two successive
  /// samples are the two answers of a pair: SampleSource::counted is 1 for the first and 0 for the second,
  /// and the examples of dev are numbered after those of train.
  DataSets data_sets(int64_t steps, int64_t global_batch, bool pairs = false) const;
};

/// Reads, tokenizes and orders the records that `config` names. Completes config.run with the values that
/// depend on model and data: the model's shape, the sequence length, steps, evaluations. Logs the lengths.
/// `config` must outlive the result. kNoInput, kData, kUsage.
TuningSets prepare_tuning(FinetuneConfig& config, const ModelSource& model);

/// Everything that apps/finetune does: connects to the other ranks, if there are any, reads model and
/// records, tunes, and writes the adapter or model. A run resumes from the latest checkpoint of its output
/// folder unless --overwrite-output-dir or --no-do-train is given. `rank`, `thread_log` and errors are as for
/// pretrain().
PretrainResult finetune(FinetuneConfig config, const StopSignal& stop,
                        const std::optional<LaunchedRank>& rank = {}, const ThreadLog& thread_log = {});

}  // namespace megalith
