#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "libcore/data/indexed/indexed_dataset.h"

namespace megalith {

/// The min and max token id; without tokens 0 and -1.
struct TokenRange {
  int64_t min = 0, max = -1;
  bool operator==(const TokenRange&) const = default;
};

/// Called now and then by work that takes long, from any thread; throws to end it. May be empty.
using WorkCheck = std::function<void()>;

/// Reads every token, on all cores, with progress.
TokenRange scan_tokens(const IndexedDataset& data, const WorkCheck& check = {});

/// Refuses a dataset with an id outside [0, vocab_size), naming the first document that holds one: kData. The
/// range of ids is the sidecar's where it describes this dataset, else scanned. With a `cache_folder`
/// (created) the result of a scan is kept there and taken from there while the files' sizes and times are the
/// same.
void check_token_ids(const IndexedDataset& data, int64_t vocab_size, const std::string& cache_folder = {},
                     const WorkCheck& check = {});

/// The tokenizer of a run; without one `hash` is empty.
struct RunTokenizer {
  std::string name, hash;  // as Tokenizer::name() and hash()
};

/// Refuses datasets whose sidecars say that another tokenizer than the run's made them, or, in a run without
/// one, than the model's that goes on, or else not all the same, whichever calls they came in: the same ids
/// would mean other texts. A dataset without a sidecar may be anything.
class TokenizerCheck {
 public:
  TokenizerCheck(const RunTokenizer& run, bool allowed);
  /// The tokenizer that the model in `checkpoint` was trained with; before any datasets. kUsage where the
  /// run's is another one; with `allowed` a warning.
  void check_model(const std::string& checkpoint, const RunTokenizer& model);
  /// kUsage, naming the dataset and both tokenizers; with `allowed` a warning.
  void check(std::span<const IndexedDataset> datasets);

 private:
  void complain(const std::string& found, const std::string& remedy) const;

  const bool allowed_;
  std::string hash_, known_from_;  // of the run, the model or the first dataset; and for people who says so
};

}  // namespace megalith
