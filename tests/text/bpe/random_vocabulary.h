#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/bpe/byte_pair_encoder.h"

namespace megalith::test {

/// A vocabulary of byte-pair merges: the 256 bytes, with ids from `first` on, and the tokens that are added.
struct MergedVocabulary {
  std::vector<std::string> tokens;
  std::vector<BytePairEncoder::Merge> merges;
  std::array<int32_t, 256> bytes;

  explicit MergedVocabulary(size_t first = 0) : tokens(first) {
    for (size_t byte = 0; byte < 256; ++byte) {
      bytes[byte] = static_cast<int32_t>(tokens.size());
      tokens.emplace_back(1, static_cast<char>(byte));
    }
  }
  const std::string& text(int32_t id) const { return tokens[static_cast<size_t>(id)]; }

  int32_t add(int32_t left, int32_t right) {
    const auto merged = static_cast<int32_t>(tokens.size());
    tokens.push_back(text(left) + text(right));
    merges.push_back({left, right, merged});
    return merged;
  }
  /// Tries to add `n` random merges over the bytes of `letters`. They may join parts of characters and make
  /// tokens of at most nine bytes.
  void add_random(const std::vector<std::string>& letters, int n, std::mt19937& random) {
    std::vector<int32_t> pool;
    for (const std::string& letter : letters)
      for (const char c : letter) pool.push_back(bytes[static_cast<uint8_t>(c)]);
    for (int i = 0; i < n; ++i) {
      const int32_t left = pool[random() % pool.size()], right = pool[random() % pool.size()];
      if (text(left).size() + text(right).size() <= 9) pool.push_back(add(left, right));
    }
  }
};

/// Few characters of one to four bytes, so that pieces of all lengths recur.
inline const std::vector<std::string> kFewLetters = {
    "a", "b", "c", " ", "e", "\xD0\xBF", "\xE6\x97\xA5", "\xE6\x97\xA6", "\xF0\x9F\x98\x80"};

}  // namespace megalith::test
