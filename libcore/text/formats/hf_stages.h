#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/text/formats/json_cursor.h"
#include "libcore/text/formats/token_decoder.h"
#include "libcore/text/pretokenize/text_cutter.h"
#include "libcore/text/unicode/normalizer.h"
#include "libcore/text/wordpiece/word_classes.h"

namespace megalith {

/// The Metaspace pre-tokenizer: blanks become `mark`, and a mark is put before a text that does not begin
/// with one.
struct Metaspace {
  /// Before which words a mark is put: none, the first of the whole text, or all.
  enum class Prepend : uint8_t { kNever, kFirst, kAlways };
  std::string mark;
  Prepend prepend = Prepend::kAlways;
  bool split = true;  // whether a pretoken begins at each mark
  /// WhitespaceSplit before it: white space only separates words, each of which gets a mark.
  bool words = false;
};

struct HfPretokenizer {
  std::vector<CutStage> stages;
  bool byte_level = false;  // whether tokens are written in GPT-2's byte alphabet
  std::optional<Metaspace> metaspace;
};

/// Ids that a post-processor puts around those of a text.
struct HfTemplate {
  std::vector<int32_t> before, after;
};

// The stages around the model in a tokenizer.json. Each function reads one member of the file's object and
// throws kData, with the path of the value, for anything unsupported.
Normalizer read_hf_normalizer(const JsonCursor& root);
HfPretokenizer read_hf_pretokenizer(const JsonCursor& root);
WordCuts read_hf_word_cuts(const JsonCursor& root);  // the pre-tokenizer of a WordPiece model
HfTemplate read_hf_post_processor(const JsonCursor& root);
TokenDecoder read_hf_decoder(const JsonCursor& root);

}  // namespace megalith
