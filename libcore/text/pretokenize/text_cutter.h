#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "libcore/text/pretokenize/split_pattern.h"

namespace megalith {

// The stages of a pre-tokenizer: each cuts the pieces that the stages before it left.

/// Divides a piece into the matches of a pattern and the text between them, as the Split of Hugging Face
/// tokenizers does, and makes new pieces of these parts.
struct SplitStage {
  enum class Use : uint8_t {
    kIsolated,            // each part is a piece
    kRemoved,             // the matches are left out
    kContiguous,          // neighbouring matches are one piece
    kMergedWithPrevious,  // a match after other text is one piece with it
    kMergedWithNext,      // a match before other text is one piece with it
  };
  SplitPattern pattern;
  Use use = Use::kIsolated;
  bool invert = false;  // whether matches and the text between them change roles
};

/// Puts a blank before each piece that does not begin with one, as ByteLevel's add_prefix_space does.
struct BlankStage {};

using CutStage = std::variant<SplitStage, BlankStage>;

/// Identifies what a stage does, in hashes.
std::string name_of(const CutStage& stage);

/// The patterns of the stages, for pretokenizer(), if it can do all that they do: each part is a piece, and
/// what precedes a match does not matter to it.
std::optional<std::vector<SplitPattern>> plain_patterns(const std::vector<CutStage>& stages);

/// The pretokens of a text, end to end.
struct CutText {
  std::string text;
  std::vector<uint32_t> ends;

  /// Finds these pretokens, one after the other. Keeps a reference to this object.
  FindPretokens finder() const;
};

/// Cuts texts by stages of every kind. It needs a text as a whole, and takes 10 to 50 bytes of memory for
/// each of its bytes: the shorter the pieces, the more.
class TextCutter {
 public:
  explicit TextCutter(std::vector<CutStage> stages) : stages_(std::move(stages)) {}
  /// Throws kData if the text has 4 GiB or more.
  CutText cut(std::string_view utf8) const;

 private:
  std::vector<CutStage> stages_;
};

}  // namespace megalith
