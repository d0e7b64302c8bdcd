#include "libcore/io/parquet/thrift_reader.h"

#include <string>

#include <gtest/gtest.h>

namespace megalith {
namespace {

using namespace std::string_view_literals;

const ParquetPlace kPlace{"f.parquet", "its footer", 4};

/// The integer of field 9 of a struct, whose other fields are skipped.
int64_t field_9(std::string_view bytes) {
  int64_t value = 0;
  ThriftReader reader(bytes, kPlace);
  reader.read_struct([&](ThriftReader& in, const ThriftReader::Field& field) {
    if (field.id != 9) return false;
    value = in.integer(field);
    return true;
  });
  EXPECT_EQ(reader.taken(), bytes.size());
  return value;
}

// The bytes are written by hand after thrift-compact-protocol.md. "\x55\x0e" is field 4 + 5, an i32 of 7.
TEST(ThriftReader, SkipsWhatItDoesNotKnow) {
  EXPECT_EQ(field_9("\x41\x55\x0e\x00"sv), 7) << "a truth has no bytes in a struct";
  EXPECT_EQ(field_9("\x49\x31\x01\x02\x01\x55\x0e\x00"sv), 7) << "but one in a list";
  EXPECT_EQ(field_9("\x4b\x02\x11\x01\x02\x02\x01\x55\x0e\x00"sv), 7) << "and in a map";
  EXPECT_EQ(field_9("\x4b\x00\x55\x0e\x00"sv), 7) << "an empty map has no types";
  EXPECT_EQ(field_9("\x4b\x01\x85\x01x\x02\x55\x0e\x00"sv), 7) << "of texts to integers";
  EXPECT_EQ(field_9("\x4c\x18\x02xy\x00\x55\x0e\x00"sv), 7) << "a struct";
  EXPECT_EQ(field_9("\x47"
                    "12345678"
                    "\x55\x0e\x00"sv),
            7)
      << "a double";
}

TEST(ThriftReader, SaysWhereTheBytesEnd) {
  for (const std::string_view bytes : {"\x55"sv, "\x55\x8e"sv,
                                       "\x48\x05"
                                       "abc"sv,
                                       "\x4b\x7f\x11\x01"sv, "\x49\xfc\x7f\x00"sv})
    EXPECT_THROW(field_9(bytes), ThriftReader::RanOut) << bytes.size();
}

TEST(ThriftReader, RefusesWhatIsTooDeep) {
  EXPECT_THROW(field_9(std::string(100, '\x1c')), Error) << "structs in structs";
  EXPECT_THROW(field_9("\x1d"sv), Error) << "an unknown type";
  EXPECT_THROW(field_9("\x95\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"sv), Error)
      << "more than 64 bits";
}

}  // namespace
}  // namespace megalith
