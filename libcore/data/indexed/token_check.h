#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "libcore/data/indexed/indexed_dataset.h"

namespace megalith {

/// The smallest and the largest token id. If there is no token: 0 and -1.
struct TokenRange {
  int64_t min = 0, max = -1;
  bool operator==(const TokenRange&) const = default;
};

/// A function that long work calls from time to time, on any of its threads; it may throw to end the work.
/// May be empty.
using WorkCheck = std::function<void()>;

/// Finds the range of token ids: reads every token, on all cores, and shows progress.
TokenRange scan_tokens(const IndexedDataset& data, const WorkCheck& check = {});

/// Throws kData if an id of the dataset is outside [0, vocab_size); the message names the first document with
/// such an id. The range of ids comes from the sidecar if it matches the dataset, otherwise from a scan. The
/// result of a scan is kept in `cache_folder` (created if needed; empty: not kept) and reused while the
/// files' sizes and times stay the same.
void check_token_ids(const IndexedDataset& data, int64_t vocab_size, const std::string& cache_folder = {},
                     const WorkCheck& check = {});

/// The tokenizer of a run; without one, `hash` is empty.
struct RunTokenizer {
  std::string name, hash;  // Tokenizer::name() and hash()
};

/// Refuses datasets whose sidecars name a different tokenizer than the run's: the same ids would mean
/// different texts. If the run has no tokenizer, the one of the model that it resumes counts; without a
/// model, that of the first dataset, in this or an earlier call. A dataset without a sidecar is always
/// accepted.
class TokenizerCheck {
 public:
  TokenizerCheck(const RunTokenizer& run, bool allowed);
  /// Checks the tokenizer that the model in `checkpoint` was trained with. To be called before check().
  /// kUsage if the run has another tokenizer; with `allowed`, a warning.
  void check_model(const std::string& checkpoint, const RunTokenizer& model);
  /// Throws kUsage, naming the dataset and both tokenizers, if a dataset has another tokenizer; with
  /// `allowed`, a warning.
  void check(std::span<const IndexedDataset> datasets);

 private:
  void complain(const std::string& found, const std::string& remedy) const;

  const bool allowed_;
  std::string hash_,
      known_from_;  // the expected hash; where it comes from, for messages
};

}  // namespace megalith
