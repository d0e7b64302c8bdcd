#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/bpe/token_texts.h"
#include "libcore/text/formats/hf_stages.h"
#include "libcore/text/formats/packed_model.h"
#include "libcore/text/lazy_joined.h"
#include "libcore/text/unicode/stream_normalizer.h"

namespace megalith {

/// A tokenizer.json: its model and everything around it.
struct HfParts {
  CoreModel model;  // with its added tokens
  Normalizer normalizer;
  std::optional<Metaspace> metaspace;
  HfTemplate around;
  TokenDecoder decoder;
  TokenTexts texts;  // the tokens as the file writes them
};

/// Encodes a text as Hugging Face does: added tokens are cut out, the rest is normalized, "normalized" added
/// tokens are cut out of that, and what is left goes through pre-tokenizer and model; the post-processor's
/// ids go around the whole. A long text is encoded in parts unless it must be normalized as a whole.
class HfTokenizer : public Tokenizer {
 public:
  explicit HfTokenizer(HfParts parts);

  int vocab_size() const override { return core_->vocab_size(); }
  int eod() const override { return core_->eod(); }
  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override;
  void encode_to(std::string_view utf8, IdBuffer& out) const override;
  Around around() const override { return {around_.before, around_.after}; }
  void encode_in_parts(std::string_view utf8, const TakeIds& take) const override;
  void encode_all(std::span<const std::string_view> texts, IdBuffer& out) const override;
  void expect(uint64_t bytes) override { core_->expect(bytes); }
  std::string decode(std::span<const int32_t> ids) const override;
  void decode_all(std::span<const int32_t> ids, ByteBuffer& out) const override;
  std::string name() const override { return core_->name(); }
  std::string hash() const override;

  const CoreTokenizer& core() const { return *core_; }

 private:
  struct Ready {};
  HfTokenizer(Ready, HfParts parts);  // the added tokens of `parts` are already normalized

  /// Memory for the pieces of a text.
  struct Memory {
    Normalizer::Scratch scratch;
    std::string spaced;
  };
  /// Calls `text` with each normalized piece that the model must encode, and `ids` with ids that are found
  /// without it.
  template <class Text, class Ids>
  void each_part(std::string_view utf8, Memory& memory, Text&& text, Ids&& ids) const;
  template <class Text, class Ids>
  bool encode_as_stream(std::string_view utf8, bool is_first, Text&& text, Ids&& ids) const;
  struct Position {
    bool begins;  // whether the text begins a piece
    bool first;   // whether it is in the first piece of the whole text
  };
  std::string_view spaced(std::string_view utf8, Position position, std::string& storage) const;
  void append_words(std::string_view utf8, bool begins, std::string& out) const;

  bool core_finds_added_;  // which saves a pass over the text
  bool core_decodes_;      // which saves a string for each token
  AddedTokens raw_added_, normalized_added_;
  Normalizer written_;     // as the file has it
  Normalizer normalizer_;  // what texts go through; see with_blanks()
  std::unique_ptr<CoreTokenizer> core_;
  std::optional<StreamNormalizer> stream_normalizer_;  // empty: texts are normalized whole
  std::optional<Metaspace> metaspace_;
  HfTemplate around_;
  TokenDecoder decoder_;
  TokenTexts texts_;
  LazyJoined<JoinedDecoder> joined_;  // nothing where decoder_ does more than join
};

}  // namespace megalith
