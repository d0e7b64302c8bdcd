#include "libcore/text/id_buffer.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
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
  EXPECT_EQ(narrow.bytes(), 12U);
  EXPECT_EQ(wide.bytes(), 24U);
  const std::vector<int32_t> twice{0, 1, 65535, 0, 1, 65535};
  EXPECT_EQ(narrow.ids(), twice);
  EXPECT_EQ(wide.ids(), twice);
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
  EXPECT_EQ(wide.ids(), std::vector{65536});
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
  for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(ids.ids()[2 * i], i);
}

/// More ids than a part holds.
std::vector<int32_t> many_ids() {
  std::vector<int32_t> ids(IdBuffer::kPartBytes);
  std::iota(ids.begin(), ids.end(), 0);
  for (int32_t& id : ids) id %= 60000;
  return ids;
}

TEST(IdBuffer, IsInPartsThatNobodySees) {
  const std::vector<int32_t> ids = many_ids();
  for (const size_t width : {2, 4})
    for (const size_t at_once : {size_t{1000}, size_t{70'001}, ids.size()}) {
      IdBuffer buffer(width);
      for (size_t at = 0; at < ids.size(); at += at_once)
        buffer.append(std::span(ids).subspan(at, std::min(at_once, ids.size() - at)));
      EXPECT_TRUE(buffer.ids() == ids);
      EXPECT_EQ(buffer.size(), ids.size());
      std::string joined, wanted;
      for (const auto& part : buffer.parts()) joined.append(part.data(), part.size());
      for (const int32_t id : ids) wanted.append(reinterpret_cast<const char*>(&id), width);
      EXPECT_TRUE(joined == wanted);
      for (const auto& [from, to] :
           {std::pair(size_t{0}, size_t{0}), std::pair(size_t{1}, wanted.size() - 1),
            std::pair(size_t{262'144}, size_t{262'146}), std::pair(wanted.size() / 2, wanted.size())}) {
        joined.clear();
        for (const auto& part : buffer.parts(from, to)) joined.append(part.data(), part.size());
        EXPECT_TRUE(joined == wanted.substr(from, to - from)) << from << " to " << to;
      }
      const IdBuffer moved = std::move(buffer);
      EXPECT_TRUE(moved.ids() == ids);
    }
}

TEST(IdBuffer, ContinuesWhereItWasTruncated) {
  std::vector<int32_t> ids = many_ids();
  IdBuffer buffer(2);
  for (size_t at = 0; at < ids.size(); at += 10'000)
    buffer.append(std::span(ids).subspan(at, std::min<size_t>(10'000, ids.size() - at)));
  for (const size_t kept :
       {ids.size(), ids.size() - 1, size_t{130'000}, size_t{120'000}, size_t{7}, size_t{0}}) {
    buffer.truncate(kept);
    ids.resize(kept);
    EXPECT_TRUE(buffer.ids() == ids) << kept;
    buffer.append(std::vector<int32_t>{5, 6});
    ids.insert(ids.end(), {5, 6});
    EXPECT_TRUE(buffer.ids() == ids) << kept;
  }
  buffer.clear();
  EXPECT_EQ(buffer.size(), 0U);
  EXPECT_TRUE(buffer.parts().empty());
}

TEST(IdBuffer, KeepsOnePartForTheNextText) {
  IdBuffer buffer(2);
  buffer.append(std::vector<int32_t>{1, 2, 3});
  const char* const part = buffer.parts()[0].data();
  buffer.append(many_ids());  // more than a part holds
  buffer.clear();
  buffer.append(std::vector<int32_t>{4});
  EXPECT_EQ(buffer.parts()[0].data(), part);
  EXPECT_EQ(buffer.ids(), std::vector{4});
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
    std::vector<int32_t> twice = wanted;
    twice.insert(twice.end(), wanted.begin(), wanted.end());
    EXPECT_EQ(narrow.ids(), twice);
    EXPECT_EQ(wide.ids(), twice);
  }
}

}  // namespace
}  // namespace megalith
