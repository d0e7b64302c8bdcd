#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libcore/text/formats/byte_level_tokenizer.h"

namespace megalith {

/// Encodes a text that arrives in parts, for models whose pretokens depend on nothing before them. Whole
/// pretokens are passed on; one of more than kLongText bytes is merged as it arrives. So a text of any length
/// needs little memory.
class PretokenStream : public CoreTokenizer::Stream {
 public:
  using Takers = CoreTokenizer::Takers;
  /// Keeps a reference to `core`. `look_ahead`: as in ByteLevelModel.
  PretokenStream(const ByteLevelTokenizer& core, size_t look_ahead, Takers take)
      : core_(core), look_ahead_(look_ahead), take_(std::move(take)) {}

  void add(std::string_view part) override;
  void finish() override;

 private:
  static constexpr size_t kPartBytes = CoreTokenizer::kPartBytes, kLongText = CoreTokenizer::kLongText;
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
