#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "libcore/io/parquet/parquet_format.h"
#include "libcore/io/parquet/parquet_place.h"

namespace megalith {

/// A value of a column: of its three members the one that the column's type has. `integer` also holds truths.
struct ColumnValue {
  std::string_view text = {};
  int64_t integer = 0;
  double real = 0;
};

/// The values of a page, one after the other. Throws kData where the page's bytes end too early.
class ColumnValues {
 public:
  virtual ~ColumnValues() = default;
  /// A text views the page, its dictionary, or this object's memory, and is valid until the next call.
  virtual void next(ColumnValue& value) = 0;
};

/// What a page's values are read from; all of it must outlive the reader.
struct StoredValues {
  parquet::Encoding encoding;
  parquet::Physical type;  // kBoolean to kByteArray, but not kInt96
  std::string_view bytes;
  const std::vector<ColumnValue>& dictionary;  // of the column chunk; empty: it has none
  const ParquetPlace& place;
};

/// kData if the encoding is not one of the type's.
std::unique_ptr<ColumnValues> open_values(const StoredValues& stored);

}  // namespace megalith
