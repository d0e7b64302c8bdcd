#include "libcore/io/parquet/packed_numbers.h"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

const ParquetPlace kPlace{"f.parquet", "column \"c\"", 4};

std::vector<uint32_t> runs(std::string_view bytes, int width, size_t count) {
  RunDecoder decoder(bytes, width, kPlace);
  std::vector<uint32_t> numbers;
  while (numbers.size() < count) numbers.push_back(decoder.next());
  return numbers;
}

TEST(RunDecoder, ReadsRunsAndGroups) {
  // Encodings.md's example: 0 to 7 in 3 bits each are 0x88 0xc6 0xfa
  EXPECT_EQ(runs("\x03\x88\xc6\xfa"sv, 3, 8), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(runs("\x08\x05\x03\x88\xc6\xfa"sv, 3, 6), (std::vector<uint32_t>{5, 5, 5, 5, 0, 1}));
  EXPECT_EQ(runs("\x04\x2c\x01"sv, 9, 2), (std::vector<uint32_t>{300, 300})) << "two bytes for 9 bits";
  EXPECT_EQ(runs("\x03\xff\xff\xff\xff\x01\x00\x00\x00"sv, 32, 2), (std::vector<uint32_t>{0xffffffff, 1}))
      << "the last group may be cut off";
}

TEST(RunDecoder, NeedsNoBytesForOneValue) {
  EXPECT_EQ(runs(""sv, 0, 3), (std::vector<uint32_t>{0, 0, 0}));
}

TEST(RunDecoder, RefusesWhatEndsTooEarly) {
  EXPECT_THROW(runs(""sv, 1, 1), Error);
  EXPECT_THROW(runs("\x08"sv, 3, 1), Error);
  EXPECT_THROW(runs("\x02\x05"sv, 3, 2), Error) << "a run of one";
  EXPECT_THROW(runs("\x03"sv, 3, 1), Error);
  EXPECT_THROW(runs("\x03"sv, 33, 1), Error);
}

std::vector<int64_t> deltas(std::string_view bytes) {
  DeltaDecoder decoder(bytes, kPlace);
  std::vector<int64_t> numbers;
  while (numbers.size() < decoder.count()) numbers.push_back(decoder.next());
  return numbers;
}

TEST(DeltaDecoder, ReadsDifferences) {
  // Encodings.md's examples: 1 2 3 4 5 (differences of 1), and 7 5 3 1 2 3 4 5 (at least -2: 0 0 0 3 3 3 3)
  EXPECT_EQ(deltas("\x80\x01\x04\x05\x02\x02\x00\x00\x00\x00"sv), (std::vector<int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(deltas("\x80\x01\x04\x08\x0e\x03\x02\x00\x00\x00\xc0\x3f\x00\x00\x00\x00\x00\x00"sv),
            (std::vector<int64_t>{7, 5, 3, 1, 2, 3, 4, 5}));
  EXPECT_EQ(deltas("\x80\x01\x04\x01\x54"sv), (std::vector<int64_t>{42})) << "one number has no block";
  EXPECT_EQ(deltas("\x80\x01\x04\x00\x00"sv), std::vector<int64_t>{});
}

TEST(DeltaDecoder, SumsWrapAround) {
  // from 2^63 - 1, a difference of 1
  EXPECT_EQ(deltas("\x80\x01\x04\x02\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x00\x00\x00\x00"sv),
            (std::vector<int64_t>{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}));
}

TEST(DeltaDecoder, KnowsWhereItEnds) {
  EXPECT_EQ(DeltaDecoder("\x80\x01\x04\x05\x02\x02\x00\x00\x00\x00rest"sv, kPlace).size(), 10U);
}

TEST(DeltaDecoder, KnowsWhereItEndsWithoutReadingEachNumber) {
  // a million blocks of 65536 equal numbers, two bytes each: one by one they would take minutes
  std::string bytes = "\x80\x80\x04\x01\x80\x80\x80\x80\x80\x02"s + '\0';
  bytes.append(size_t{2} << 20, '\0');
  DeltaDecoder decoder(bytes, kPlace);
  EXPECT_EQ(decoder.count(), uint64_t{1} << 36);
  EXPECT_EQ(decoder.size(), bytes.size());
}

TEST(DeltaDecoder, RefusesWhatIsDamaged) {
  EXPECT_THROW(deltas("\x80\x01\x04\x05\x02\x02\x00"sv), Error) << "no widths";
  EXPECT_THROW(deltas("\x80\x01\x04\x05\x02\x02\x41\x00\x00\x00"sv), Error) << "65 bits";
  EXPECT_THROW(deltas("\x80\x01\x04\x05\x02\x02\x08\x00\x00\x00short"sv), Error);
  EXPECT_THROW(deltas("\x80\x01\x00\x05\x02"sv), Error) << "no miniblocks";
  EXPECT_THROW(deltas("\x80\x01\x03\x05\x02"sv), Error) << "128 is no multiple of 3";
  EXPECT_THROW(deltas("\x80\x80\x80\x01\x01\xff\xff\xff\x0f\x00\x00\x00"sv), Error)
      << "a block of two million";
  EXPECT_THROW(deltas("\x80\x01\x04\xff\xff\xff\x0f\x00\x00\x00\x00\x00\x00"sv), Error)
      << "too many for 13 bytes";
  DeltaDecoder one("\x80\x01\x04\x01\x54"sv, kPlace);
  one.next();
  EXPECT_THROW(one.next(), Error);
}

}  // namespace
}  // namespace megalith
