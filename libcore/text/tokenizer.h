#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/byte_buffer.h"
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
  /// In a list of ids, the end of a text: ids of several texts are one list.
  static constexpr int32_t kTextEnd = -1;
  /// Encodes texts as encode_to() does, but many short ones in less time. Appends the ids of each text and
  /// then kTextEnd to `out`, whose ids have 4 bytes. Throws as encode(); `out` is then incomplete.
  virtual void encode_all(std::span<const std::string_view> texts, IdBuffer& out) const;
  static constexpr uint64_t kUnknownSize = UINT64_MAX;
  /// Announces about how many bytes of text will be encoded. This number sets the size of the token cache:
  /// touching memory for the first time costs more than the misses of a small cache
  /// (text/bpe/cache/token_cache.cpp). Has no effect once something has been encoded.
  virtual void expect([[maybe_unused]] uint64_t bytes) {}
  /// The text of `ids`. Special tokens become their text; bytes that form no valid UTF-8 become U+FFFD. kData
  /// for an unknown id.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  /// Appends to `out` the text of each list of ids that kTextEnd ends, as decode() gives it, and a line end
  /// after it. Throws as decode(); `out` is then incomplete.
  virtual void decode_all(std::span<const int32_t> ids, ByteBuffer& out) const;
  /// Megatron's --tokenizer-type name, for log lines.
  virtual std::string name() const = 0;
  /// SHA-256 of everything that determines the ids of a text and the end of a document, so that the sidecar
  /// of a dataset can name its tokenizer. All file formats of a tokenizer (vocab.json with merges.txt, or
  /// tokenizer.json) have the same hash.
  virtual std::string hash() const = 0;
};

/// Throws the kData of decode(): `id` is not one of the `size` ids from 0.
[[noreturn]] void refuse_token_id(int32_t id, size_t size);

}  // namespace megalith
