#include "libcore/io/parquet/snappy.h"

#include <string>

#include <gtest/gtest.h>

namespace megalith {
namespace {

/// The decompressed block, or the reason why it is damaged.
std::string decompressed(std::string_view block) {
  const std::optional<uint64_t> size = snappy_size(block);
  if (!size) return "no size";
  std::string out(*size, '?');
  const char* const error = decompress_snappy(block, out.data());
  return error ? error : out;
}

using namespace std::string_literals;
using namespace std::string_view_literals;

// Blocks written by hand after google/snappy's format_description.txt.

TEST(Snappy, CopiesLiterals) {
  EXPECT_EQ(decompressed("\x00"sv), "");
  EXPECT_EQ(decompressed("\x03\x08xyz"sv), "xyz");
  const std::string text(70, 'q');
  EXPECT_EQ(decompressed("\x46\xf0\x45"s + text), text) << "a length of one byte: 69 + 1";
  const std::string longer(300, 'r');
  EXPECT_EQ(decompressed("\xac\x02\xf4\x2b\x01"s + longer), longer) << "a length of two bytes: 0x12b + 1";
}

TEST(Snappy, RepeatsEarlierBytes) {
  EXPECT_EQ(decompressed("\x07\x08xyz\x01\x03"sv), "xyzxyzx") << "4 bytes from 3 before";
  EXPECT_EQ(decompressed("\x06\x04"
                         "ab\x0e\x02\x00"sv),
            "ababab")
      << "4 bytes, a distance of two bytes";
  EXPECT_EQ(decompressed("\x06\x04"
                         "ab\x0f\x02\x00\x00\x00"sv),
            "ababab")
      << "4 bytes, of four bytes";
  const std::string far(300, 'r');
  EXPECT_EQ(decompressed("\xb0\x02\xf4\x2b\x01"s + far + "\x21\x2c"s), far + "rrrr") << "11 bits: 0x12c";
}

TEST(Snappy, SaysWhatIsDamaged) {
  EXPECT_EQ(decompressed(""sv), "no size");
  EXPECT_EQ(decompressed("\xff\xff\xff\xff\xff"sv), "no size");
  EXPECT_EQ(decompressed("\x03\x08xy"sv), "it ends inside an element");
  EXPECT_EQ(decompressed("\x03\xf0"sv), "it ends inside an element");
  EXPECT_EQ(decompressed("\x02\x08xyz"sv), "it holds more bytes than its length says");
  EXPECT_EQ(decompressed("\x04\x08xyz"sv), "it holds fewer bytes than its length says");
  EXPECT_EQ(decompressed("\x07\x08xyz\x01\x04"sv), "a copy begins before its data");
  EXPECT_EQ(decompressed("\x07\x08xyz\x01\x00"sv), "a copy begins before its data");
}

}  // namespace
}  // namespace megalith
