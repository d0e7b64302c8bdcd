#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libcore/text/bpe/cache/cached_encoder.h"
#include "libcore/text/id_buffer.h"
#include "libcore/text/pretokenize/pretokenizer.h"

namespace megalith {

/// Encodes the pretokens of many short texts together. A CachedEncoder works on 128 pretokens at a time, and
/// a line of a text file has about eight.
class PretokenBatch {
 public:
  static constexpr size_t kLongestText = size_t{1} << 12;

  /// Keeps references to `encoder` and `out`, whose ids have 4 bytes.
  PretokenBatch(CachedEncoder& encoder, IdBuffer& out) : encoder_(encoder), out_(out) {}

  /// Adds the pretokens of a text of at most kLongestText bytes, of which a copy is made.
  void add(std::string_view text, const FindPretokens& find);
  /// Adds ids after those of the texts before.
  void put(std::span<const int32_t> ids);
  /// Appends all ids to `out`.
  void flush();

 private:
  static constexpr size_t kEnds = 2 * kLongestText;  // most pretokens, and most ids between them

  CachedEncoder& encoder_;
  IdBuffer& out_;
  size_t size_ = 0, count_ = 0;  // bytes of text_, and number of pretokens
  // Not set before they are written: there is one object for each document, which may be short.
  std::array<char, 4 * kLongestText> text_;  // the texts, end to end
  std::array<uint32_t, kEnds> ends_;         // ends of the pretokens in text_
  std::vector<CachedEncoder::Mark> marks_;
};

}  // namespace megalith
