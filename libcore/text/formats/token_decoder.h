#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "libcore/base/byte_buffer.h"
#include "libcore/text/bpe/token_texts.h"

namespace megalith {

/// The supported decoders of Hugging Face tokenizers. Each step turns the tokens of a text into other tokens;
/// finally they are joined. Without any step, tokens are joined by blanks.
class TokenDecoder {
 public:
  struct ByteLevel {};  // decodes GPT-2's byte alphabet, over all tokens at once
  /// A run of tokens like "<0x41>" becomes the text of these bytes, or a U+FFFD for each if they are not
  /// UTF-8.
  struct ByteFallback {};
  struct Fuse {};   // joins all tokens into one
  struct Replace {  // replaces every `from` in each token
    std::string from, to;
  };
  struct Strip {  // removes up to `start` times `content` from a token's front, `stop` times from its end
    std::string content;
    size_t start = 0, stop = 0;
  };
  struct Metaspace {  // `mark` becomes a blank; in the first token it is dropped if `drop_first`
    std::string mark;
    bool drop_first = false;
  };
  struct WordPiece {  // joins tokens with `prefix` to the one before, others by a blank
    std::string prefix;
    bool clean_up = false;  // removes blanks before punctuation and English endings
  };
  using Step = std::variant<ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, WordPiece>;

  TokenDecoder() = default;
  explicit TokenDecoder(std::vector<Step> steps) : steps_(std::move(steps)) {}

  const std::vector<Step>& steps() const { return steps_; }
  /// The text of tokens as the vocabulary writes them. Bytes that form no valid UTF-8 become U+FFFD.
  std::string decode(std::vector<std::string> tokens) const;

 private:
  std::vector<Step> steps_;
};

/// Decodes many texts at once, where a TokenDecoder changes tokens one by one, joins them, and at most strips
/// the result, as those of LLaMA-2 and Gemma do.
class JoinedDecoder {
 public:
  /// Nothing if `decoder` does more. `tokens`: as the vocabulary writes them. Goes through all of them, which
  /// takes some 50 ns each.
  static std::optional<JoinedDecoder> of(const TokenDecoder& decoder, const TokenTexts& tokens);

  /// See Tokenizer::decode_all().
  void decode_all(std::span<const int32_t> ids, ByteBuffer& out) const;

 private:
  TokenTexts texts_;  // what each token becomes; bytes of ByteFallback are marked, since runs of them count
  std::optional<TokenDecoder::Strip> strip_;
};

}  // namespace megalith
