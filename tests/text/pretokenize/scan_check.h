#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/utf8.h"
#include "libcore/text/pretokenize/pretokenizer.h"

/// What the tests of the kernels that find pretokens have in common.
namespace megalith {

using Ends = std::vector<size_t>;

/// Finds at most `room` ends at a time, in a block of memory of exactly the text's size, so that the address
/// sanitizer detects a byte read too far.
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

/// Each byte belongs to one pretoken, whatever the bytes are. `kernels`: name and function of each.
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
