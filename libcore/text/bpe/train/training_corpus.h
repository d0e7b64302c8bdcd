#pragma once

#include <string>
#include <vector>

#include "libcore/text/bpe/train/piece_counts.h"

namespace megalith {

/// The texts that a tokenizer is trained on.
struct TrainingCorpus {
  std::vector<std::string> files;  // "-": stdin; compressed ones too, see InputStream
  std::vector<std::string>
      json_keys;       // loose JSON: the strings under these keys; empty: each file is one text
  size_t workers = 1;  // threads that parse and count
};

/// Counts the pretokens of all texts (gpt2_pretoken, each text on its own). Memory: the distinct pretokens,
/// once per worker, and a few MiB of input. Blank lines are skipped. Throws kNoInput, kIo; kData with
/// FILE:LINE:BYTE for what is not loose JSON with these keys, or not UTF-8.
PieceCounts count_pretokens(const TrainingCorpus& corpus);

}  // namespace megalith
