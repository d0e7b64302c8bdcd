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

/// A stage of a pre-tokenizer, which divides each piece that the stages before it left. A Split of Hugging
/// Face divides it into the matches of a pattern and the text between them, and then
struct SplitStage {
  enum class Use : uint8_t {
    kIsolated,            // each of these is a piece
    kRemoved,             // the matches are left out
    kContiguous,          // neighbouring matches are one piece
    kMergedWithPrevious,  // a match after other text is one piece with it
    kMergedWithNext,      // a match before other text is one piece with it
  };
  SplitPattern pattern;
  Use use = Use::kIsolated;
  bool invert = false;  // the text between matches counts as matches, and these as text between
};

/// A blank is put before each piece that does not begin with one.
struct BlankStage {};

using CutStage = std::variant<SplitStage, BlankStage>;

/// Identifies what a stage does, in hashes.
std::string name_of(const CutStage& stage);

/// The patterns of the stages, if the function pretokenizer() can do all that they do: pieces are matches and
/// what lies between, and what precedes a match does not matter to it.
std::optional<std::vector<SplitPattern>> plain_patterns(const std::vector<CutStage>& stages);

/// The pretokens of a text, end to end.
struct CutText {
  std::string text;
  std::vector<uint32_t> ends;

  /// Finds these pretokens, one after the other. Keeps a reference to this object.
  FindPretokens finder() const;
};

/// Cuts texts by stages of every kind. It needs a text as a whole, and takes 10 to 50 bytes for each of its
/// bytes, the more the shorter the pieces are.
class TextCutter {
 public:
  explicit TextCutter(std::vector<CutStage> stages) : stages_(std::move(stages)) {}
  /// Throws kData if the text has 4 GiB or more.
  CutText cut(std::string_view utf8) const;

 private:
  std::vector<CutStage> stages_;
};

}  // namespace megalith
