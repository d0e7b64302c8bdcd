#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libcore/io/parquet/parquet_place.h"

namespace megalith {

/// Reads numbers of up to 32 bits that are stored as runs of one value and as groups of eight packed ones
/// (Parquet's RLE / bit-packing hybrid). Views the bytes. Throws kData where they end.
class RunDecoder {
 public:
  /// Without bytes. Of width 0 it yields zeros without end.
  RunDecoder() = default;
  /// `width`: bits of a number, 0 to 32.
  RunDecoder(std::string_view bytes, int width, const ParquetPlace& place);

  uint32_t next() {
    if (left_ == 0) begin_run();
    --left_;
    return packed_ ? unpack() : value_;
  }

 private:
  void begin_run();
  uint32_t unpack();
  uint64_t varint();

  std::string_view bytes_;
  const ParquetPlace* place_ = nullptr;
  int width_ = 0;
  size_t at_ = 0;
  uint64_t left_ = 0;  // numbers of the run
  bool packed_ = false;
  uint32_t value_ = 0;  // of a run of one value
  uint64_t bit_ = 0;    // of a packed run: where in bytes_ its next number begins
};

/// The number of bits of numbers up to `most`.
int bits_for(uint32_t most);

/// Reads numbers of up to 64 bits that are stored as differences (Parquet's DELTA_BINARY_PACKED). Views the
/// bytes. Throws kData where they end, and for blocks that are not as the format wants them.
class DeltaDecoder {
 public:
  DeltaDecoder(std::string_view bytes, const ParquetPlace& place);

  uint64_t count() const { return count_; }  // numbers in all
  int64_t next();                            // to be called count() times at most
  /// The bytes that all of its numbers take. Passes over them, so that no number may be read afterwards. The
  /// time grows with the bytes, not with the numbers: a byte may stand for 65536 of them.
  size_t size();

 private:
  static constexpr size_t kMostMiniblocks = 512;
  static constexpr uint64_t kMostInBlock = uint64_t{1} << 16;  // writers take 128 to 2048

  uint64_t varint();
  void begin_block();
  void begin_miniblock();
  uint64_t unpack();

  std::string_view bytes_;
  const ParquetPlace& place_;
  size_t at_ = 0;
  uint64_t block_ = 0, miniblocks_ = 0, each_ = 0;  // numbers of a block; of a miniblock
  uint64_t count_ = 0, taken_ = 0;
  int64_t value_ = 0, least_ = 0;  // least_: the smallest difference of the block
  std::array<uint8_t, kMostMiniblocks> widths_{};
  uint64_t miniblock_ = 0, left_ = 0;  // the next miniblock; numbers left in the current one
  int width_ = 0;
  uint64_t bit_ = 0;  // where in bytes_ the next number begins
};

}  // namespace megalith
