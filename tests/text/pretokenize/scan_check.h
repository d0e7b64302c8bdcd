#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/utf8.h"
#include "libcore/text/pretokenize/pretokenizer.h"

/// Helpers for the tests of the kernels that find pretokens.
namespace megalith {

using Ends = std::vector<size_t>;

/// The ends of the pretokens that `find` finds in `text`, at most `room` of them at a time. The text is
/// copied to a block of memory of exactly its size, so that the address sanitizer detects a byte read too
/// far.
inline Ends found(const FindPretokens& find, std::string_view text, size_t room = 4096) {
  const std::vector<char> copy(text.begin(), text.end());
  std::vector<uint32_t> buffer(room);
  Ends ends;
  for (size_t from = 0; from < copy.size();) {
    const size_t count = find({copy.data() + from, copy.size() - from}, buffer);
    EXPECT_TRUE(count > 0 && count <= room);
    for (size_t i = 0; i < count; ++i) ends.push_back(from + buffer[i]);
    from = ends.back();
  }
  return ends;
}

inline std::string utf8(uint32_t code) {
  std::string out;
  append_utf8(out, code);
  return out;
}

/// Expects that each byte of random bytes belongs to one pretoken. `kernels`: the name and function of each
/// kernel.
template <class Kernels>
void expect_all_bytes_found(const Kernels& kernels) {
  std::mt19937 random(4);
  for (int round = 0; round < 3000; ++round) {
    std::string text(1 + random() % 200, '\0');
    for (char& c : text) c = static_cast<char>(random() % 4 == 0 ? random() : 0xC0 + random() % 64);
    for (const auto& [name, find] : kernels) {
      const Ends ends = found(find, text);
      EXPECT_TRUE(std::is_sorted(ends.begin(), ends.end())) << name;
      EXPECT_EQ(ends.back(), text.size()) << name;
    }
  }
}

}  // namespace megalith
