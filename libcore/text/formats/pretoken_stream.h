#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "libcore/text/formats/byte_level_tokenizer.h"

namespace megalith {

/// Encodes a text that arrives in parts, for models whose pretokens depend on nothing before them. Whole
/// pretokens are passed on; one of more than kLongText bytes is merged as it arrives. So a text of any length
/// needs little memory.
class PretokenStream {
 public:
  static constexpr size_t kLongText = size_t{1} << 20;  // shorter texts need no stream
  static constexpr size_t kBit = size_t{1} << 16;       // a good size for parts

  struct Takers {
    std::function<void(std::string_view)> text;  // encodes whole pretokens
    Tokenizer::TakeIds ids;                      // takes the ids of the others
  };
  /// Keeps a reference to `core`. `look_ahead`: how many bytes after a place decide whether a pretoken ends
  /// there.
  PretokenStream(const ByteLevelTokenizer& core, size_t look_ahead, Takers take)
      : core_(core), look_ahead_(look_ahead), take_(std::move(take)) {}

  /// Adds the next part of the text, which must consist of whole characters.
  void add(std::string_view part);
  /// Ends the text.
  void finish();

 private:
  void continue_giant(size_t look_ahead);
  void begin_giant();
  void add_to_giant(size_t bytes);
  size_t giant_end(size_t look_ahead) const;
  size_t last_end() const;

  const ByteLevelTokenizer& core_;
  size_t look_ahead_;
  Takers take_;
  /// Text that is still to be encoded. It starts where a pretoken begins, or continues the one in giant_.
  std::string held_;
  std::optional<LongPiece> giant_;
  std::string before_;  // the last character of giant_
};

}  // namespace megalith
