#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/bpe/added_tokens.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_table.h"
#include "libcore/text/unicode/charsmap.h"

namespace megalith {

/// What a SentencePiece model does with a text before it looks for tokens (normalizer.cc of that library):
/// replaces characters by the model's charsmap, removes blanks at both ends and makes runs of them one, adds
/// a blank before or after the text, and writes blanks as U+2581. Const and thread-safe.
class SentencePieceNormalizer {
 public:
  struct Settings {
    SentencePieceTable::Rules rules;
    bool space_after = false;  // whether the added blank stands after the text
    std::string blank;         // how blanks, and U+2581 in a text, are written; see SentencePieceSymbols
    std::vector<std::string> user_defined;  // texts that the charsmap leaves as they are
  };
  /// Throws kData, beginning with `where`, if the charsmap is damaged.
  SentencePieceNormalizer(Settings settings, const std::string& where);

  const Settings& settings() const { return settings_; }

  /// One text, normalized part by part. Keeps references to the normalizer and the text.
  class Run {
   public:
    Run(const SentencePieceNormalizer& owner, std::string_view utf8) : owner_(owner), rest_(utf8) {}
    /// Appends what about the next `bytes` bytes of the text become, and after its last ones what the model
    /// adds at the end. Returns whether some text is left. Throws kData if the charsmap is damaged.
    bool next(size_t bytes, std::string& out);

   private:
    void start(std::string& out);
    void take(std::string_view text, std::string& out);
    void add_blank(std::string& out);
    void copy(std::string_view text, std::string& out) const;
    bool copy_plain(std::string& out);
    void finish(std::string& out);

    const SentencePieceNormalizer& owner_;
    std::string_view rest_;
    bool started_ = false, ended_ = false;
    bool after_space_ = false;
    size_t held_ = 0;  // blanks that are written only if something else follows
  };

 private:
  struct Prefix {
    std::string_view text;  // what the first `bytes` bytes become
    size_t bytes;
  };
  Prefix prefix(std::string_view utf8) const;
  bool is_plain(uint8_t ascii) const;

  Settings settings_;
  Charsmap charsmap_;
  AddedTokens user_defined_;
  bool changes_nothing_ = false;   // except blanks
  std::array<bool, 128> plain_{};  // see is_plain()
};

}  // namespace megalith
