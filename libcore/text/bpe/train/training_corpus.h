#pragma once

#include <string>
#include <vector>

#include "libcore/io/streams/text_reader.h"
#include "libcore/text/bpe/train/piece_counts.h"

namespace megalith {

/// The texts that a tokenizer is trained on.
struct TrainingCorpus {
  std::vector<std::string> files;  // "-" is stdin; files may be compressed (InputStream) or Parquet
  TextUnit text = TextUnit::kNone;
  std::vector<std::string> json_keys = {};  // of loose JSON: keys of the strings that are the texts
  size_t workers = 1;                       // threads that parse and count
};

/// Counts the pretokens of all texts, each split on its own by gpt2_pretoken(). Blank lines are skipped.
/// Memory holds the distinct pretokens, once per worker, and a few MiB of input, or the longest texts. Throws
/// kNoInput, kIo; kData with FILE:LINE:BYTE for input that is not loose JSON with these keys, or not UTF-8.
PieceCounts count_pretokens(const TrainingCorpus& corpus);

}  // namespace megalith
