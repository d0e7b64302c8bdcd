#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/base/byte_buffer.h"
#include "libcore/text/bpe/token_texts.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_table.h"

namespace megalith {

/// Turns ids into text as SentencePieceProcessor::Decode does: control pieces have no text, runs of bytes
/// become the characters that they form, or U+FFFD for each byte that forms none, and U+2581 becomes a blank,
/// except the one that the normalizer added before the text.
class SentencePieceDecoder {
 public:
  explicit SentencePieceDecoder(const SentencePieceTable& table);

  /// What a SentencePieceDecoder is made of, for kept files.
  struct Parts {
    TokenTexts texts;
    std::vector<uint8_t> types;  // SentencePieceTable::Type of each id
    std::string unknown_text;
    bool drops_first_blank = false;  // U+2581 at the beginning of a text is dropped
    bool drops_every_first = false;  // and so is each that follows, until there is some text
  };
  const Parts& parts() const { return parts_; }
  explicit SentencePieceDecoder(Parts parts) : parts_(std::move(parts)) {}

  /// Throws kData for an id that is not in the vocabulary.
  std::string decode(std::span<const int32_t> ids) const;

 private:
  Parts parts_;
};

/// Decodes many texts at once, as a SentencePieceDecoder decodes each of them.
class JoinedPieces {
 public:
  /// Goes through all pieces, which takes some 50 ns each. `decoder` must outlive this object. Nothing if its
  /// unknown_text is not UTF-8, because the texts around it might then complete a character.
  static std::optional<JoinedPieces> of(const SentencePieceDecoder& decoder);

  /// See Tokenizer::decode_all().
  void decode_all(std::span<const int32_t> ids, ByteBuffer& out) const;

 private:
  explicit JoinedPieces(const SentencePieceDecoder::Parts& parts) : parts_(&parts) {}
  size_t append_beginning(std::span<const int32_t> ids, ByteBuffer& out) const;

  const SentencePieceDecoder::Parts* parts_;
  TokenTexts texts_;  // what each id adds to a text that has begun; see added_text()
};

}  // namespace megalith
