#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/byte_level_tokenizer.h"
#include "libcore/text/hf_stages.h"

namespace megalith {

/// What a tokenizer.json has beside its model.
struct HfParts {
  ByteLevelModel model;  // its added tokens too
  Normalizer normalizer;
  std::optional<Metaspace> metaspace;
  HfTemplate around;
  TokenDecoder decoder;
  std::vector<std::string> texts;  // of each id, as the file writes it
};

/// Hugging Face's way through a text: added tokens are cut out, the rest is normalized, added tokens that are
/// "normalized" are cut out of it, and what is left goes through pre-tokenizer and model; ids of the
/// post-processor stand around the whole.
class HfTokenizer : public Tokenizer {
 public:
  explicit HfTokenizer(HfParts parts);

  int vocab_size() const override { return core_.vocab_size(); }
  int eod() const override { return core_.eod(); }
  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override;
  void encode_to(std::string_view utf8, IdBuffer& out) const override;
  void encode_in_pieces(std::string_view utf8, const TakeIds& take) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  std::string name() const override { return core_.name(); }
  std::string hash() const override;

 private:
  struct Ready {};
  HfTokenizer(Ready, HfParts parts);  // whose added tokens are normalized

  /// Calls `text` for each piece that the model encodes, normalized, and `token` for each added token.
  template <class Text, class Token>
  void each_part(std::string_view utf8, Text&& text, Token&& token) const;
  std::string_view spaced(std::string_view utf8, bool is_first, std::string& storage) const;

  AddedTokens raw_added_, normalized_added_;
  ByteLevelTokenizer core_;  // with the added tokens when nothing is normalized
  Normalizer normalizer_;
  std::optional<Metaspace> metaspace_;
  HfTemplate around_;
  TokenDecoder decoder_;
  std::vector<std::string> texts_;
};

}  // namespace megalith
