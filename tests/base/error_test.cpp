#include "libcore/base/error.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace megalith {
namespace {

enum Unscoped { kSeven = 7 };

TEST(Concat, PrintsWhatAStreamPrints) {
  const auto expect_as_streamed = [](const auto& part) {
    std::ostringstream streamed;
    streamed << part;
    EXPECT_EQ(concat(part), streamed.str());
  };
  expect_as_streamed("text");
  expect_as_streamed(std::string("with\0nul", 8));
  expect_as_streamed(std::string_view("a view").substr(2));
  expect_as_streamed('c');
  expect_as_streamed(static_cast<unsigned char>('u'));
  expect_as_streamed(int8_t{65});
  expect_as_streamed(true);
  expect_as_streamed(std::numeric_limits<int64_t>::min());
  expect_as_streamed(std::numeric_limits<uint64_t>::max());
  expect_as_streamed(uint16_t{65535});
  expect_as_streamed(1e-7);
  expect_as_streamed(0.1F);
  expect_as_streamed(kSeven);
}

TEST(Concat, JoinsPartsInTheirOrder) {
  EXPECT_EQ(concat("layers.", 11, '.', std::string("weight"), ' ', 0.5), "layers.11.weight 0.5");
  EXPECT_EQ(concat(), "");
}

TEST(Fail, CarriesKindAndMessage) {
  try {
    fail(ErrorKind::kIo, "a.bin: ", 3, " bytes");
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kIo);
    EXPECT_STREQ(e.what(), "a.bin: 3 bytes");
    return;
  }
  FAIL() << "nothing was thrown";
}

}  // namespace
}  // namespace megalith
