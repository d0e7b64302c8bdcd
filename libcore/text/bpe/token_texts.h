#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libcore/base/byte_buffer.h"
#include "libcore/base/shared_array.h"

namespace megalith {

/// The text of each id, end to end in one block of memory, so that a mapped file can be used as it is. If no
/// token has an id, its text is empty.
class TokenTexts {
 public:
  TokenTexts() = default;
  TokenTexts(const std::vector<std::string>& texts);  // NOLINT(google-explicit-constructor): the same texts
  /// `ends`: where each text ends in `bytes`; see fit().
  TokenTexts(SharedArray<char> bytes, SharedArray<uint32_t> ends)
      : bytes_(std::move(bytes)), ends_(std::move(ends)) {}
  /// Whether these arrays can be used: `ends` ascends and its last element is the end of the bytes, so that
  /// every text lies within them.
  static bool fit(const SharedArray<char>& bytes, const SharedArray<uint32_t>& ends);

  size_t size() const { return ends_.size(); }
  /// The text of an id, valid while any copy of this object exists, or until change() of the id.
  std::string_view operator[](size_t id) const {
    if (!changed_.empty())
      if (const auto changed = changed_.find(id); changed != changed_.end()) return changed->second;
    const size_t begin = id == 0 ? 0 : ends_[id - 1];
    return {bytes_.data() + begin, ends_[id] - begin};
  }
  void change(size_t id, std::string text) {
    if (text != (*this)[id]) changed_[id] = std::move(text);
  }
  bool changed() const { return !changed_.empty(); }

  /// The arrays given to the constructor, without changes.
  const SharedArray<char>& bytes() const { return bytes_; }
  const SharedArray<uint32_t>& ends() const { return ends_; }

 private:
  SharedArray<char> bytes_;
  SharedArray<uint32_t> ends_;
  std::unordered_map<size_t, std::string> changed_;
};

/// Appends the texts of `ids` to `out`, and `end` for each Tokenizer::kTextEnd. Throws kData for an id that
/// `texts` does not have; `out` is then as before.
void append_texts(const TokenTexts& texts, std::span<const int32_t> ids, ByteBuffer& out, char end = '\n');

}  // namespace megalith
