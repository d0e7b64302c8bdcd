#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/id_buffer.h"

namespace megalith {

/// Converts text to token ids and back. Thread-safe: encode and decode may be called from several threads at
/// once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Number of ids, special tokens included, before any padding: every id is in [0, vocab_size).
  virtual int vocab_size() const = 0;
  /// The id that --append-eod puts after a document, in [0, vocab_size). Throws kData when the tokenizer has
  /// none.
  virtual int eod() const = 0;
  /// Appends the ids of `utf8` (valid UTF-8; the caller checks) to `ids`. Throws kData only if the tokenizer
  /// does not accept every text (NullTokenizer).
  virtual void encode(std::string_view utf8, std::vector<int32_t>& ids) const = 0;
  /// Like encode(), but appends to `out`, in the id type of a dataset, and with so little work per call that
  /// short texts are fast too. Throws kData when an id does not fit out.width().
  virtual void encode_to(std::string_view utf8, IdBuffer& out) const;
  /// What the tokenizer puts before and after the ids of a text, such as <s>.
  struct Around {
    std::span<const int32_t> before = {}, after = {};
  };
  virtual Around around() const { return {}; }
  using TakeIds = std::function<void(std::span<const int32_t>)>;
  /// Passes the ids of a very long text to `take` in order and in parts, so that they need not all be in
  /// memory. By default there is one part.
  virtual void encode_in_parts(std::string_view utf8, const TakeIds& take) const;
  static constexpr uint64_t kUnknownSize = UINT64_MAX;
  /// Announces about how many bytes of text will be encoded. This number sets the size of the token cache:
  /// touching memory for the first time costs more than the misses of a small cache
  /// (text/bpe/cache/token_cache.cpp). Has no effect once something has been encoded.
  virtual void expect([[maybe_unused]] uint64_t bytes) {}
  /// The text of `ids`. Special tokens become their text; bytes that form no valid UTF-8 become U+FFFD. kData
  /// for an unknown id.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  /// Megatron's --tokenizer-type name, for log lines.
  virtual std::string name() const = 0;
  /// SHA-256 of everything that determines the ids of a text and the end of a document, so that the sidecar
  /// of a dataset can name its tokenizer. All file formats of a tokenizer (vocab.json with merges.txt, or
  /// tokenizer.json) have the same hash.
  virtual std::string hash() const = 0;
};

}  // namespace megalith
