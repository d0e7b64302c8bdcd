#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "libcore/data/cache/index_cache.h"
#include "libcore/data/cache/tokenizer_terms.h"
#include "libcore/options/fields.h"

namespace megalith {

/// Options of `megalith-data cache`: those of a job of Megatron-LM that determine its cache of indexes.
struct CacheCommand {
  std::vector<std::string> data_path, train_path, valid_path, test_path;
  std::string paths_file, split, folder;
  int64_t seed = 1234, seq_length = 0, eval_interval = 1000, eval_iters = 100, threads = 0;
  std::optional<int64_t> train_iters, train_samples, global_batch;
  bool skip_train = false, full_validation = false;
  double surplus = 0.005;

  template <class V>
  void fields(V&& v) {
    v("data-path", data_path, "Datasets: PREFIX, or WEIGHT PREFIX pairs to blend.", metavar("PREFIX"));
    v("data-args-path", paths_file, "A file with the words of --data-path.", metavar("FILE"));
    v("train-data-path", train_path, "Datasets to train on, instead of --data-path.", metavar("PREFIX"));
    v("valid-data-path", valid_path, "Datasets for validation.", metavar("PREFIX"));
    v("test-data-path", test_path, "Datasets for the test.", metavar("PREFIX"));
    v("split", split, "Weights of the parts of --data-path.", metavar("A,B,C"), default_text("969, 30, 1"));
    v("data-cache-path", folder, "Folder for the cache.", metavar("DIR"),
      default_text("PREFIX/cache/GPTDataset_indices for each dataset, and none for blends"));
    v("seq-length", seq_length, "Tokens of a sample.", required(), at_least(1));
    v("seed", seed, "The seed of the shuffling.", between(0, 4294967295.0));
    v("train-iters", train_iters, "Steps of the job.", at_least(0));
    v("train-samples", train_samples, "Samples of the job, instead of --train-iters.", at_least(1));
    v("global-batch-size", global_batch, "Samples of a step.", at_least(1));
    v("eval-interval", eval_interval, "Steps between two evaluations.", at_least(1));
    v("eval-iters", eval_iters, "Steps of an evaluation.", at_least(0));
    v("skip-train", skip_train, "The job evaluates, and does not train.");
    v("full-validation", full_validation, "Each evaluation reads all of the validation data.");
    v("mid-level-dataset-surplus", surplus,
      "Samples that a blend's dataset gets beyond its share, as a fraction of the share.", at_least(0));
    v("threads", threads, "Threads that write indexes.", at_least(0), default_text("one for each core"));
  }
  void finish();
  void validate(Problems&) const;
  /// Samples of train, valid and test, as Megatron's get_train_valid_test_num_samples gives them.
  std::array<std::optional<int64_t>, 3> samples() const;
};

/// The words of a job's command line that `megalith-data cache` reads. Other options of Megatron-LM change no
/// cache and are left out, with their values. kUsage for an option that Megatron-LM does not have, and for
/// one that changes the cache and is not supported.
std::vector<std::string> words_for_cache(const std::vector<std::string>& job);

/// Runs `megalith-data cache OPTIONS OF THE JOB`, a separate app inside this program. Prints what was
/// written, or what --help asks for. Throws what write_index_cache() throws.
void run_cache_command(const std::vector<std::string>& words, std::ostream& out);

}  // namespace megalith
