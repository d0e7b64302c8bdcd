#pragma once

#include <cstdint>
#include <string_view>

/// Numbers of the Parquet format, as in parquet.thrift of apache/parquet-format 2.11
/// (docs/formats/parquet.md).
namespace megalith::parquet {

inline constexpr std::string_view kMagic = "PAR1", kEncryptedMagic = "PARE";

/// How a column's values are stored.
enum class Physical : int32_t {
  kBoolean = 0,
  kInt32 = 1,
  kInt64 = 2,
  kInt96 = 3,
  kFloat = 4,
  kDouble = 5,
  kByteArray = 6,
  kFixedByteArray = 7
};

enum class Repetition : int32_t { kRequired = 0, kOptional = 1, kRepeated = 2 };

/// What values mean (ConvertedType; a newer LogicalType is mapped to it).
enum class Meaning : int32_t {
  kNone = -1,
  kUtf8 = 0,
  kMap = 1,
  kMapKeyValue = 2,
  kList = 3,
  kEnum = 4,
  kDecimal = 5,
  kDate = 6,
  kUint8 = 11,
  kUint16 = 12,
  kUint32 = 13,
  kUint64 = 14,
  kInt8 = 15,
  kInt64 = 18,
  kJson = 19,
  kOther = 1000  // a LogicalType that is none of these: TIMESTAMP, UUID, FLOAT16, …
};

enum class Codec : int32_t {
  kUncompressed = 0,
  kSnappy = 1,
  kGzip = 2,
  kLzo = 3,
  kBrotli = 4,
  kLz4 = 5,
  kZstd = 6,
  kLz4Raw = 7
};
constexpr std::string_view name(Codec codec) {
  constexpr std::string_view kNames[] = {"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                         "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};
  const auto number = static_cast<size_t>(codec);
  return number < std::size(kNames) ? kNames[number] : "an unknown codec";
}

enum class Encoding : int32_t {
  kPlain = 0,
  kPlainDictionary = 2,
  kRle = 3,
  kBitPacked = 4,
  kDeltaBinaryPacked = 5,
  kDeltaLengthByteArray = 6,
  kDeltaByteArray = 7,
  kRleDictionary = 8,
  kByteStreamSplit = 9
};

enum class PageType : int32_t { kData = 0, kIndex = 1, kDictionary = 2, kDataV2 = 3 };

}  // namespace megalith::parquet
