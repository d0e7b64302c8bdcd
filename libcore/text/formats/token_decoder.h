#pragma once

#include <string>
#include <variant>
#include <vector>

namespace megalith {

/// The decoders of Hugging Face tokenizers that are done here: each takes the tokens of a text and makes
/// others, or other texts, of them; in the end they are joined. Without any, tokens are joined by blanks.
class TokenDecoder {
 public:
  struct ByteLevel {};     // GPT-2's byte alphabet, all tokens at once
  struct ByteFallback {};  // runs of "<0x41>" become the text of these bytes, or one U+FFFD for each
  struct Fuse {};          // all become one
  struct Replace {         // in each token
    std::string from, to;
  };
  struct Strip {  // of each token, up to `start` characters `content` in front and `stop` at the end
    std::string content;
    size_t start = 0, stop = 0;
  };
  struct Metaspace {  // `mark` becomes a blank; in the first token it goes when `drop_first`
    std::string mark;
    bool drop_first = false;
  };
  using Step = std::variant<ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace>;

  TokenDecoder() = default;
  explicit TokenDecoder(std::vector<Step> steps) : steps_(std::move(steps)) {}

  const std::vector<Step>& steps() const { return steps_; }
  /// The text of tokens as a vocabulary writes them. Bytes that form no valid UTF-8 become U+FFFD.
  std::string decode(std::vector<std::string> tokens) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace megalith
