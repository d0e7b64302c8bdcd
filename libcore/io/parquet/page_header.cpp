#include "libcore/io/parquet/page_header.h"

#include "libcore/io/parquet/thrift_reader.h"

namespace megalith {
namespace {

using Field = ThriftReader::Field;
using parquet::Encoding;

Encoding encoding(ThriftReader& in, const Field& field) {
  return static_cast<Encoding>(in.integer(field));
}

void read_data_header(ThriftReader& in, PageHeader& page) {
  in.read_struct([&](ThriftReader& value, const Field& field) {
    switch (field.id) {
      case 1:
        page.values = value.integer(field);
        return true;
      case 2:
        page.encoding = encoding(value, field);
        return true;
      case 3:
        page.definition_levels = encoding(value, field);
        return true;
      case 4:
        page.repetition_levels = encoding(value, field);
        return true;
      default:
        return false;
    }
  });
}

void read_dictionary_header(ThriftReader& in, PageHeader& page) {
  in.read_struct([&](ThriftReader& value, const Field& field) {
    if (field.id == 1)
      page.values = value.integer(field);
    else if (field.id == 2)
      page.encoding = encoding(value, field);
    else
      return false;
    return true;
  });
}

void read_data_header_v2(ThriftReader& in, PageHeader& page) {
  in.read_struct([&](ThriftReader& value, const Field& field) {
    switch (field.id) {
      case 1:
        page.values = value.integer(field);
        return true;
      case 4:
        page.encoding = encoding(value, field);
        return true;
      case 5:
        page.definition_bytes = value.integer(field);
        return true;
      case 6:
        page.repetition_bytes = value.integer(field);
        return true;
      case 7:
        page.compressed = value.truth(field);
        return true;
      default:
        return false;
    }
  });
}

bool read_part(ThriftReader& in, const Field& field, PageHeader& page) {
  constexpr int kData = 5, kDictionary = 7, kDataV2 = 8;
  if (field.id != kData && field.id != kDictionary && field.id != kDataV2) return false;
  in.require(field, ThriftReader::kStruct);
  if (field.id == kData) read_data_header(in, page);
  if (field.id == kDictionary) read_dictionary_header(in, page);
  if (field.id == kDataV2) read_data_header_v2(in, page);
  return true;
}

void check(const PageHeader& page, const ParquetPlace& place) {
  if (page.bytes < 0 || page.plain_bytes < 0 || page.values < 0 || page.definition_bytes < 0 ||
      page.repetition_bytes < 0)
    fail_damaged(place, "found a page with a negative size");
  const int64_t levels = page.definition_bytes + page.repetition_bytes;
  if (levels > page.bytes || levels > page.plain_bytes)
    fail_damaged(place, "found levels of ", levels, " bytes in a page of ", page.bytes,
                 " (decompressed: ", page.plain_bytes, ")");
}

}  // namespace

std::optional<PageHeader> parse_page_header(std::string_view bytes, const ParquetPlace& place) try {
  PageHeader page;
  ThriftReader in(bytes, place);
  in.read_struct([&](ThriftReader& value, const Field& field) {
    switch (field.id) {
      case 1:
        page.type = static_cast<parquet::PageType>(value.integer(field));
        return true;
      case 2:
        page.plain_bytes = static_cast<int32_t>(value.integer(field));
        return true;
      case 3:
        page.bytes = static_cast<int32_t>(value.integer(field));
        return true;
      case 4:
        page.crc = static_cast<uint32_t>(value.integer(field));
        return true;
      default:
        return read_part(value, field, page);
    }
  });
  check(page, place);
  page.size = in.taken();
  return page;
} catch (const ThriftReader::RanOut&) {
  return std::nullopt;
}

}  // namespace megalith
