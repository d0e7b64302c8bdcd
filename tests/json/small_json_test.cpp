#include "libcore/json/small_json.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

TEST(SmallJson, IsNotReadWhenItIsLarge) {
  const test::TempDir dir;
  const std::string path = dir / "config.json";
  write_file(path, "{\"a\": \"" + std::string((4 << 20) - 9, 'x') + "\"}");
  EXPECT_TRUE(load_small(path).is_object());
  // the text is not JSON either, but the message must be about its size
  write_file(path, "[" + std::string(5 << 20, ' '));
  try {
    load_small(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find("wanted at most 4194304"), std::string::npos) << error.what();
  }
  EXPECT_THROW(read_small(path), Error);
  EXPECT_THROW(load_small(dir / "none"), Error);
  EXPECT_THROW(read_small("/dev/zero"), Error);
}

}  // namespace
}  // namespace megalith
