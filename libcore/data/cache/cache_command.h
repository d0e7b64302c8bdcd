#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "libcore/config/data_config.h"
#include "libcore/config/train_config.h"
#include "libcore/data/cache/tokenizer_terms.h"
#include "libcore/options/fields.h"

namespace megalith {

/// Options of `megalith-data cache`: those of a job of Megatron-LM that determine its cache of indexes. What
/// they have in common with a run of ours is read and counted by the same code.
struct CacheCommand {
  DataConfig data;    // its paths and the files that name them
  TrainConfig train;  // its length, its batches and its evaluations
  std::string split, folder;
  int64_t seq_length = 0, threads = 0;
  std::optional<int64_t> eval_batch, start_eval;
  bool skip_train = false;
  double surplus = 0.005;

  template <class V>
  void fields(V&& v) {
    path_fields(v);
    v("data-cache-path", folder, "Folder for the cache.", metavar("DIR"),
      default_text("PREFIX/cache/GPTDataset_indices for each dataset, and none for blends"));
    v("seq-length", seq_length, "Tokens of a sample.", required(), at_least(1));
    v("seed", train.seed, "The seed of the shuffling.", between(0, 4294967295.0));
    length_fields(v);
    v("mid-level-dataset-surplus", surplus,
      "Samples that a blend's dataset gets beyond its share, as a fraction of the share.", at_least(0));
    v("fim-data", data.fim.on, "The job permutes its samples, so its datasets are of another class.");
    v("threads", threads, "Threads that write indexes.", at_least(0), default_text("one for each core"));
  }
  void finish();
  void validate(Problems&) const;
  /// Leaves out what a job of that version ignores, refuses what it does not know, and counts the steps. Call
  /// after finish() and validate(), with what they found.
  void settle(const TokenizerTerms& of, Problems&);
  /// Samples of train, valid and test, as Megatron's get_train_valid_test_num_samples gives them.
  std::array<std::optional<int64_t>, 3> samples() const;

 private:
  template <class V>
  void path_fields(V&& v) {
    v("data-path", data.data_path, "Datasets: PREFIX, or WEIGHT PREFIX pairs to blend.", metavar("PREFIX"));
    v("data-args-path", data.args_file, "A file with the words of --data-path.", metavar("FILE"));
    v("train-data-path", data.train_path, "Datasets to train on, instead of --data-path.", metavar("PREFIX"));
    v("valid-data-path", data.valid_path, "Datasets for validation.", metavar("PREFIX"));
    v("test-data-path", data.test_path, "Datasets for the test.", metavar("PREFIX"));
    v("per-split-data-args-path", data.split_args_file,
      "JSON file with the words of these three, as \"train\", \"valid\" and \"test\".", metavar("FILE"));
    v("split", split, "Weights of the parts of --data-path.", metavar("A,B,C"),
      default_text("969, 30, 1 with --data-path"));
  }
  template <class V>
  void length_fields(V&& v) {
    v("train-iters", train.iters, "Steps of the job.", at_least(0));
    v("train-samples", train.samples, "Samples of the job, instead of --train-iters.", at_least(1));
    v("global-batch-size", train.global_batch, "Samples of a step.", at_least(0));
    v("rampup-batch-size", train.rampup,
      "The batch grows from START by INCREMENT over SAMPLES; needs --train-samples; head ignores it.",
      metavar("START INCREMENT SAMPLES"), last_counts());
    v("step-batch-size-schedule", train.batch_schedule,
      "The batch by the tokens that are read: \"0:4 1K:16\"; needs --train-samples; head only.",
      metavar("SCHEDULE"));
    v("eval-interval", train.eval_interval, "Steps between two evaluations.", at_least(1));
    v("eval-iters", train.eval_iters, "Steps of an evaluation.", at_least(0));
    v("eval-global-batch-size", eval_batch, "Samples of a step of an evaluation; head only.", at_least(1),
      default_text("global-batch-size"));
    v("start-eval-at-iter", start_eval, "Step of the first evaluation; head only.", at_least(0));
    v("skip-train", skip_train, "The job evaluates, and does not train.");
    v("full-validation", train.full_validation, "Each evaluation reads all of the validation data.");
    v("multiple-validation-sets", train.multiple_validation,
      "The datasets of --valid-data-path are evaluated one by one.");
  }
  int64_t evaluations() const;
  int64_t samples_of_evaluation_step() const { return eval_batch.value_or(train.global_batch); }
  void validate_length(Problems&) const;
  void require_samples(const char* option, bool given, Problems&) const;
  void validate_ramp(Problems&) const;
  void validate_amounts(Problems&) const;
};

/// The words of a job's command line that `megalith-data cache` reads. Other options of Megatron-LM change no
/// cache and are left out, with their values. kUsage for an option that Megatron-LM does not have, and for
/// one that changes the cache and is not supported.
std::vector<std::string> words_for_cache(const std::vector<std::string>& job);

/// Runs `megalith-data cache OPTIONS OF THE JOB`, a separate app inside this program. Prints what was
/// written, or what --help asks for. Throws what write_index_cache() throws.
void run_cache_command(const std::vector<std::string>& words, std::ostream& out);

}  // namespace megalith
