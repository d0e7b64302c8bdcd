#include "libcore/text/id_buffer.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/text/fixtures.h"

namespace megalith {
namespace {

TEST(IdBuffer, HoldsIdsInItsWidth) {
  IdBuffer narrow(2), wide(4);
  const std::vector<int32_t> ids{0, 1, 65535};
  for (int round = 0; round < 2; ++round) {
    narrow.append(ids);
    wide.append(ids);
  }
  EXPECT_EQ(narrow.size(), 6U);
  EXPECT_EQ(narrow.bytes().size(), 12U);
  EXPECT_EQ(wide.bytes().size(), 24U);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(narrow.ids<uint16_t>()[i], ids[i % 3]);
    EXPECT_EQ(wide.ids<int32_t>()[i], ids[i % 3]);
  }
}

TEST(IdBuffer, RefusesAnIdThatDoesNotFit) {
  for (int32_t id : {-1, 65536}) {
    IdBuffer narrow(2);
    test::expect_error(ErrorKind::kData, {std::to_string(id), "2 bytes"}, [&] {
      narrow.append(std::vector<int32_t>{1, id});
    });
  }
  IdBuffer wide(4);
  wide.append(std::vector<int32_t>{65536});
  EXPECT_EQ(wide.ids<int32_t>()[0], 65536);
}

TEST(IdBuffer, TakesWhatWasWrittenOfTheRoomGiven) {
  IdBuffer ids(2);
  for (uint16_t round = 0; round < 1000; ++round) {
    uint16_t* out = ids.extend<uint16_t>(50);
    *out++ = round;
    *out++ = 7;
    ids.finish(out);
  }
  ASSERT_EQ(ids.size(), 2000U);
  for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(ids.ids<uint16_t>()[2 * i], i);
}

TEST(Tokenizer, EncodesToBuffersWhatItEncodesToAVector) {
  const auto gpt2 = test::trained_gpt2();
  const auto null =
      make_tokenizer({.type = "NullTokenizer", .vocab = {}, .merges = {}, .model = {}, .vocab_size = 9});
  for (const auto& [tokenizer, text] :
       {std::pair(gpt2.get(), "a<|endoftext|>b  naïve"), std::pair(null.get(), "3 1 4")}) {
    const std::vector<int32_t> wanted = test::encode(*tokenizer, text);
    ASSERT_GT(wanted.size(), 2U);
    IdBuffer narrow(2), wide(4);
    for (IdBuffer* out : {&narrow, &narrow, &wide, &wide}) tokenizer->encode_to(text, *out);
    ASSERT_EQ(narrow.size(), 2 * wanted.size());
    ASSERT_EQ(wide.size(), 2 * wanted.size());
    for (size_t i = 0; i < narrow.size(); ++i) {
      EXPECT_EQ(narrow.ids<uint16_t>()[i], wanted[i % wanted.size()]);
      EXPECT_EQ(wide.ids<int32_t>()[i], wanted[i % wanted.size()]);
    }
  }
}

}  // namespace
}  // namespace megalith
