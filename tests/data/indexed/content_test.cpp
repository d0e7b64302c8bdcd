#include "libcore/data/indexed/content.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

// XXH64 with seed 0 of "" and "abc", from the reference implementation (xxhsum 0.8).
const ContentPart kEmpty{0, "ef46db3751d8e999"}, kAbc{3, "44bc2cf5ad770999"};

/// Gives `text` to a ContentChecker in pieces of `piece` bytes. Returns the error message, or an empty text
/// if `text` is accepted.
std::string refusal(const std::string& text, const std::vector<ContentPart>& parts, size_t piece) {
  try {
    ContentChecker checker("f.bin", parts, text.size());
    for (size_t at = 0; at < text.size(); at += piece) {
      const std::string part = text.substr(at, piece);
      checker.update(part.data(), part.size());
    }
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.what();
  }
  return {};
}

TEST(Content, ComparesEachPartWhereverThePiecesEnd) {
  const std::vector<ContentPart> parts = {kEmpty, kAbc, kEmpty, kEmpty, kAbc, kAbc, kEmpty};
  for (size_t piece = 1; piece < 11; ++piece) {
    EXPECT_EQ(refusal("abcabcabc", parts, piece), "");
    EXPECT_NE(refusal("abcabdabc", parts, piece).find("when written it was 44bc2cf5ad770999 (bytes 3 to 6)"),
              std::string::npos)
        << piece;
  }
}

TEST(Content, RefusesAnotherNumberOfBytes) {
  for (const char* text : {"", "abcab", "abcabcabc", "abcabca"})
    EXPECT_NE(refusal(text, {kAbc, kAbc}, 4).find("bytes are more or fewer than were written"),
              std::string::npos);
  // These sizes add up to 6 only because their sum wraps around 2^64: they must be refused.
  const uint64_t huge = uint64_t{1} << 63;
  EXPECT_FALSE(cover({{huge, ""}, {huge, ""}, {6, ""}}, 6));
  EXPECT_TRUE(cover({}, 0));
}

}  // namespace
}  // namespace megalith
