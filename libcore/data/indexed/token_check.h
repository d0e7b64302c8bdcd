#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "libcore/data/indexed/indexed_dataset.h"

namespace megalith {

/// The smallest and largest token id; without tokens 0 and -1.
struct TokenRange {
  int64_t min = 0, max = -1;
  bool operator==(const TokenRange&) const = default;
};

/// Called from time to time by long work, from any thread; may throw to end it. May be empty.
using WorkCheck = std::function<void()>;

/// Reads every token, on all cores, with progress.
TokenRange scan_tokens(const IndexedDataset& data, const WorkCheck& check = {});

/// Refuses a dataset with an id outside [0, vocab_size) with kData and the first document that holds one. The
/// range of ids comes from the sidecar if it describes this dataset, otherwise from a scan. With a
/// `cache_folder` (created if needed), the result of a scan is kept there and reused while the files' sizes
/// and times stay the same.
void check_token_ids(const IndexedDataset& data, int64_t vocab_size, const std::string& cache_folder = {},
                     const WorkCheck& check = {});

/// The tokenizer of a run; without one, `hash` is empty.
struct RunTokenizer {
  std::string name, hash;  // Tokenizer::name() and hash()
};

/// Refuses datasets made by another tokenizer, according to their sidecars: another than the run's; if the
/// run has none, another than that of the model it resumes; if there is no model either, several different
/// ones, in one call or in several. The same ids would otherwise mean different texts. A dataset without a
/// sidecar is always accepted.
class TokenizerCheck {
 public:
  TokenizerCheck(const RunTokenizer& run, bool allowed);
  /// The tokenizer that the model in `checkpoint` was trained with; to be called before any datasets. kUsage
  /// if the run has another one; with `allowed`, a warning.
  void check_model(const std::string& checkpoint, const RunTokenizer& model);
  /// kUsage with the dataset and both tokenizers; with `allowed`, a warning.
  void check(std::span<const IndexedDataset> datasets);

 private:
  void complain(const std::string& found, const std::string& remedy) const;

  const bool allowed_;
  std::string hash_,
      known_from_;  // that of the run, the model or the first dataset; and where it comes from, for messages
};

}  // namespace megalith
