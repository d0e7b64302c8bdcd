#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/pretokenize/pretokenizer.h"

namespace megalith {

/// A text, or only its first part (`open`), after which the text is not known. unsure() says whether a match
/// needed what follows an open part; then a larger part must be tried.
class Window {
 public:
  /// Whether the window ends before the character at `at`, as if the text ended there.
  using Stops = bool (*)(const char* at, const char* end);

  Window(const char* end, bool open, Stops stops = nullptr) : end_(end), open_(open), stops_(stops) {}

  bool has(const char* at) const {
    if (at < end_) return stops_ == nullptr || !stops_(at, end_);
    looked_ = true;
    return false;
  }
  const char* end() const { return end_; }
  /// Whether a match needed what follows an open part, so that the whole text may give another result.
  bool unsure() const { return open_ && looked_; }
  bool open() const { return open_; }

 private:
  const char* end_;
  bool open_;
  Stops stops_;
  mutable bool looked_ = false;
};

/// Passes where each match of a pattern in a text begins and ends, in bytes and in order.
using FindMatches =
    std::function<void(std::string_view utf8, const std::function<void(size_t, size_t)>& take)>;

/// What the regular expression of a Split pre-tokenizer matches, or what another pre-tokenizer cuts out.
struct SplitPattern {
  std::string name;  // "llama-3", or the expression itself; patterns of one name have the same matches
  /// The end of the match that begins at `at` (where there is a character), or `at` if no match begins there.
  /// What precedes `at` does not matter.
  std::function<const char*(const char* at, const Window&)> match;
  /// Whether a match may begin with a character. Optional.
  std::function<bool(uint32_t code_point)> begins = {};
  /// The first place from `at` on where a match may begin, or the text's end. Optional; for patterns for
  /// which more than a character decides.
  std::function<const char*(const char* at, const Window&)> skip = {};
  FindPretokens find = {};  // finds the same pretokens, but faster; set only if the matches cover every text
  /// How many bytes after its end decide where a match that `find` finds ends, unless it reaches to the end
  /// of the text. Empty: something farther away may decide, too.
  std::optional<size_t> looks_ahead = {};
  bool of_bytes = false;  // whether matches are found between bytes, too, not only between characters
  /// In place of `match`, for a pattern to which the text before a match matters; takes a whole text. Empty
  /// matches cut a text, too.
  FindMatches find_all = {};
};

/// The matches of a regular expression. Those of GPT-2, LLaMA-3 (cl100k), Qwen2, Qwen3.5, DeepSeek-V3, GPT-4o
/// (o200k) and tekken, and Megatron's two for tiktoken, have scanners of their own; others are compiled
/// (text/patterns). Throws UnsupportedPattern.
SplitPattern split_pattern(std::string_view regex);

/// The matches of a regular expression in a text whose bytes are written in GPT-2's byte alphabet. Throws
/// UnsupportedPattern.
SplitPattern split_pattern_of_bytes(std::string_view regex);

/// Where a text is cut at the occurrences of another: before or after each, on both sides of each, or on both
/// sides of each run of them.
enum class TextCut : uint8_t { kBefore, kAfter, kAround, kAroundRuns };
SplitPattern text_pattern(const std::string& text, TextCut cut);

SplitPattern gpt2_split_pattern();

/// With `each`, a pretoken begins at each `mark` (one character, as in Metaspace); otherwise only at the
/// first mark of a run.
SplitPattern mark_pattern(const std::string& mark, bool each);

/// Finds the matches of any pattern, also of one without find_all.
FindMatches matches_of(SplitPattern pattern);

/// Splits a text by several patterns in turn. A pattern divides each piece that the patterns before it left
/// into its own matches and the text between them. Without any pattern, a text is one pretoken.
FindPretokens pretokenizer(std::vector<SplitPattern> patterns);

}  // namespace megalith
