#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/pretokenize/pretokenizer.h"

namespace megalith {

/// A text, or the first part of one: then what is after its end is not known, and unsure() tells whether
/// anybody asked for it, because a larger part must be tried then.
class Window {
 public:
  /// Whether a text is taken to end before a character.
  using Stops = bool (*)(const char* at, const char* end);

  Window(const char* end, bool open, Stops stops = nullptr) : end_(end), open_(open), stops_(stops) {}

  bool has(const char* at) const {
    if (at < end_) return stops_ == nullptr || !stops_(at, end_);
    looked_ = true;
    return false;
  }
  const char* end() const { return end_; }
  /// Somebody asked for what is after a part's end: what was found may be otherwise in the whole text.
  bool unsure() const { return open_ && looked_; }
  bool open() const { return open_; }

 private:
  const char* end_;
  bool open_;
  Stops stops_;
  mutable bool looked_ = false;
};

/// What the regular expression of a Split pre-tokenizer matches, found by a scanner written for it. No
/// regular expressions are run, because they are many times slower and may take exponential time.
struct SplitPattern {
  std::string name;  // "llama-3", or the expression itself; equal names match alike
  /// The end of the match that begins at `at` (there is a character), or `at` when none does. What stands
  /// before `at` does not matter.
  std::function<const char*(const char* at, const Window&)> match;
  /// Where, from `at` on, a match may begin, or the text's end: characters before it begin none. Optional.
  std::function<const char*(const char* at, const Window&)> skip = {};
  FindPretokens find = {};  // set when the matches cover every text: the same, faster
};

/// The scanner for a regular expression, or nothing when it is none of those that are known: the patterns of
/// GPT-2, LLaMA-3 (cl100k), Qwen2, Qwen3.5, DeepSeek-V3, GPT-4o (o200k) and tekken, the two that Megatron has
/// for tiktoken; and sets of characters as in DeepSeek's others: "[a-z]+", "\s?\p{L}+", "\p{N}{1,3}", "\s+$".
std::optional<SplitPattern> split_pattern(std::string_view regex);

SplitPattern gpt2_split_pattern();

/// A pretoken begins at each `mark` (one character, as in Metaspace); or only at the first of several in a
/// row.
SplitPattern mark_pattern(const std::string& mark, bool each);

/// Numbers, each digit alone or as runs (the Digits pre-tokenizer).
SplitPattern digits_pattern(bool individual);

/// Pretokens by several patterns: each cuts the pieces of the one before it into its matches and what lies
/// between them. By none, a text is one pretoken.
FindPretokens pretokenizer(std::vector<SplitPattern> patterns);

}  // namespace megalith
