// The texts of tools/golden/make_patterns.py, and digests of their pieces.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/plugins/library_folders.h"
#include "libcore/base/utf8.h"
#include "libcore/hash/sha256.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"

namespace megalith::test {

/// Whether expressions that are not compiled can be matched.
inline bool has_oniguruma() {
  const std::vector<std::string> plugins = plugins_in(own_library_folders());
  return std::find(plugins.begin(), plugins.end(), "oniguruma") != plugins.end();
}
constexpr char kNoOniguruma[] = "built without Oniguruma (package libonig-dev)";

inline std::vector<std::string> pattern_texts() {
  std::vector<std::string> out;
  const Json list = Json::load(test_data("text/goldens/patterns/texts.json"));
  for (const Json& text : list.as_array()) out.push_back(text.as_string());
  return out;
}

/// Each code point that may be assigned, among others.
inline std::vector<std::string> code_point_texts() {
  std::vector<std::string> out(1);
  size_t in_text = 0;
  for (uint32_t code = 0; code < 0xE1000; ++code) {
    if ((code >= 0xD800 && code < 0xE000) || (code >= 0x32400 && code < 0xE0000)) continue;
    if (in_text++ == 256) {
      out.emplace_back();
      in_text = 1;
    }
    std::string c;
    append_utf8(c, code);
    out.back() += "a" + c + "1" + c + " " + c + "b" + c + "\n" + c + "!";
  }
  return out;
}

template <class Cut>
std::string digest(const std::vector<std::string>& texts, size_t first, size_t last, const Cut& cut_one) {
  Sha256 hash;
  for (size_t i = first; i < std::min(last, texts.size()); ++i) {
    const std::string pieces = cut_one(texts[i]);
    hash.update(pieces.data(), pieces.size());
  }
  return hash.hex();
}

/// Compares the pieces of all texts with a list of digests, one for each 500 texts.
template <class Cut>
void expect_digests(const std::vector<std::string>& texts, const Cut& cut_one, const Json& digests,
                    const std::string& what) {
  constexpr size_t kBlock = 500;
  const auto& blocks = digests.as_array();
  ASSERT_EQ(blocks.size(), texts.size() / kBlock);
  for (size_t i = 0; i < blocks.size(); ++i)
    EXPECT_EQ(digest(texts, i * kBlock, (i + 1) * kBlock, cut_one), blocks[i].as_string())
        << what << " from " << i * kBlock;
}

}  // namespace megalith::test
