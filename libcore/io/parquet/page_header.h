#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "libcore/io/parquet/parquet_format.h"
#include "libcore/io/parquet/parquet_place.h"

namespace megalith {

/// What is before each page.
struct PageHeader {
  size_t size = 0;  // bytes of this header
  parquet::PageType type = parquet::PageType::kIndex;
  int64_t bytes = 0, plain_bytes = 0;  // of the page as it is in the file, and decompressed
  std::optional<uint32_t> crc = {};    // CRC-32 of the page as it is in the file
  int64_t values = 0;                  // of a dictionary: its entries
  parquet::Encoding encoding = parquet::Encoding::kPlain;
  parquet::Encoding repetition_levels = parquet::Encoding::kRle,
                    definition_levels = parquet::Encoding::kRle;  // of kData
  int64_t repetition_bytes = 0, definition_bytes = 0;             // of kDataV2: they precede its values
  bool compressed = true;                                         // kDataV2: whether its values are
};

/// Reads the header at the beginning of `bytes`. Nothing if it has more bytes than these. kData if sizes are
/// negative, or the levels of kDataV2 are larger than the page.
std::optional<PageHeader> parse_page_header(std::string_view bytes, const ParquetPlace& place);

}  // namespace megalith
