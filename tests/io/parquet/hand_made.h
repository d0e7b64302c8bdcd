#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/io/parquet/parquet_format.h"

/// Parquet files that no writer writes, made after parquet.thrift and thrift-compact-protocol.md.
namespace megalith::test {

/// A struct in Thrift's compact protocol. Fields are added in the order of their numbers.
class Thrift {
 public:
  Thrift& integer(int id, int64_t value) {
    head(id, 6);
    varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
    return *this;
  }
  Thrift& text(int id, std::string_view value) {
    head(id, 8);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Thrift& truth(int id, bool value) {
    head(id, value ? 1 : 2);
    return *this;
  }
  Thrift& part(int id, const Thrift& value) {
    head(id, 12);
    bytes_ += value.bytes();
    return *this;
  }
  Thrift& list(int id, const std::vector<Thrift>& values) {
    list_head(id, values.size());
    for (const Thrift& value : values) bytes_ += value.bytes();
    return *this;
  }
  Thrift& list_of_nothing(int id, size_t structs) {
    list_head(id, structs);
    bytes_.append(structs, '\0');
    return *this;
  }
  std::string bytes() const { return bytes_ + '\0'; }

 private:
  void head(int id, int type) {
    bytes_ += static_cast<char>((id - last_) << 4 | type);
    last_ = id;
  }
  void list_head(int id, size_t structs) {
    head(id, 9);
    bytes_ += '\xfc';  // structs, whose number follows
    varint(structs);
  }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
  int last_ = 0;
};

/// A number of 4 bytes, little-endian as we are.
inline std::string four_bytes(size_t value) {
  const auto number = static_cast<uint32_t>(value);
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

/// A file of these pages (with their headers), which a column "t" of texts has, and of this footer.
inline std::string parquet_file(const std::string& pages, const Thrift& footer) {
  const std::string end = footer.bytes();
  return "PAR1" + pages + end + four_bytes(end.size()) + "PAR1";
}

inline Thrift column_of_texts(parquet::Repetition repetition) {
  return Thrift().integer(1, 6).integer(3, static_cast<int64_t>(repetition)).text(4, "t").integer(6, 0);
}

/// A file of one row group, of these pages; each of its rows has one of the column's `values`.
inline std::string file_of_texts(const std::string& pages, int64_t values, parquet::Codec codec,
                                 parquet::Repetition repetition = parquet::Repetition::kOptional) {
  const Thrift chunk = Thrift().part(3, Thrift()
                                            .integer(4, static_cast<int64_t>(codec))
                                            .integer(5, values)
                                            .integer(7, static_cast<int64_t>(pages.size()))
                                            .integer(9, 4));
  return parquet_file(pages, Thrift()
                                 .list(2, {Thrift().text(4, "r").integer(5, 1), column_of_texts(repetition)})
                                 .list(4, {Thrift().list(1, {chunk}).integer(3, values)}));
}

/// A page of kData with its header: texts in PLAIN, of a column that is kRequired, so that there are no
/// levels.
inline std::string page_of_texts(const std::vector<std::string>& texts) {
  constexpr int kPlain = 0, kRle = 3;
  std::string values;
  for (const std::string& text : texts) values += four_bytes(text.size()) + text;
  const auto size = static_cast<int64_t>(values.size());
  const Thrift header = Thrift()
                            .integer(1, static_cast<int64_t>(parquet::PageType::kData))
                            .integer(2, size)
                            .integer(3, size)
                            .part(5, Thrift()
                                         .integer(1, static_cast<int64_t>(texts.size()))
                                         .integer(2, kPlain)
                                         .integer(3, kRle)
                                         .integer(4, kRle));
  return header.bytes() + values;
}

/// A page of kDataV2 with its header: `nulls` and nothing but definition levels of 0 (a run), then `stored`.
inline std::string page_of_nulls(int nulls, parquet::Encoding encoding, const std::string& stored,
                                 int64_t plain_bytes) {
  const std::string levels = {static_cast<char>(nulls << 1), '\0'};
  const auto size = static_cast<int64_t>(levels.size());
  const Thrift header = Thrift()
                            .integer(1, static_cast<int64_t>(parquet::PageType::kDataV2))
                            .integer(2, size + plain_bytes)
                            .integer(3, size + static_cast<int64_t>(stored.size()))
                            .part(8, Thrift()
                                         .integer(1, nulls)
                                         .integer(2, nulls)
                                         .integer(3, nulls)
                                         .integer(4, static_cast<int64_t>(encoding))
                                         .integer(5, size)
                                         .integer(6, 0)
                                         .truth(7, true));
  return header.bytes() + levels + stored;
}

/// A page of a dictionary with its header.
inline std::string dictionary_page(int64_t entries, const std::string& stored) {
  const auto size = static_cast<int64_t>(stored.size());
  const Thrift header = Thrift()
                            .integer(1, static_cast<int64_t>(parquet::PageType::kDictionary))
                            .integer(2, size)
                            .integer(3, size)
                            .part(7, Thrift().integer(1, entries).integer(2, 0));
  return header.bytes() + stored;
}

}  // namespace megalith::test
