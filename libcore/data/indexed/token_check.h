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

/// A function that a long computation calls from time to time, on any of its threads. It may throw to end the
/// computation. It may be empty.
using WorkCheck = std::function<void()>;

/// Finds the range of token ids: reads every token, on all cores, and shows progress.
TokenRange scan_tokens(const IndexedDataset& data, const WorkCheck& check = {});

/// Throws kData if an id of the dataset is outside [0, vocab_size); the message names the first document with
/// such an id. The range of ids comes from the sidecar if that matches the dataset, otherwise from a scan of
/// all tokens. `cache_folder` (created if needed) keeps the result of a scan, which is reused while the
/// files' sizes and times stay the same. If `cache_folder` is empty, nothing is kept.
void check_token_ids(const IndexedDataset& data, int64_t vocab_size, const std::string& cache_folder = {},
                     const WorkCheck& check = {});

/// The tokenizer of a run; `hash` is empty if the run has no tokenizer.
struct RunTokenizer {
  std::string name, hash;  // Tokenizer::name() and hash()
};

/// Refuses a dataset whose sidecar names another tokenizer than the expected one, since the same ids would
/// mean different texts. The expected tokenizer is the run's. If the run has none, it is that of the model
/// that the run resumes; if there is no model either, it is that of the first dataset of the first check()
/// call. A dataset without a sidecar is always accepted.
class TokenizerCheck {
 public:
  TokenizerCheck(const RunTokenizer& run, bool allowed);
  /// Compares the run's tokenizer with the one that the model in `checkpoint` was trained with. If they
  /// differ, throws kUsage or, if `allowed`, warns. To be called before check().
  void check_model(const std::string& checkpoint, const RunTokenizer& model);
  /// If a dataset was made with another tokenizer, throws kUsage or, if `allowed`, warns. The message names
  /// the dataset and both tokenizers.
  void check(std::span<const IndexedDataset> datasets);

 private:
  void complain(const std::string& found, const std::string& remedy) const;

  const bool allowed_;
  std::string hash_,
      known_from_;  // the expected hash; where it comes from, for messages
};

}  // namespace megalith
