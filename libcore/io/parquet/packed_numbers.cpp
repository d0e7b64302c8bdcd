#include "libcore/io/parquet/packed_numbers.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "libcore/io/parquet/varint.h"

namespace megalith {
namespace {

/// The `width` <= 64 bits from bit `bit` of `bytes` on; bits beyond its end are zero.
uint64_t bits_at(std::string_view bytes, uint64_t bit, int width) {
  if (width == 0) return 0;
  const uint64_t first = bit / 8;
  const int shift = static_cast<int>(bit % 8);
  uint64_t low = 0;
  std::memcpy(&low, bytes.data() + first, std::min<uint64_t>(sizeof low, bytes.size() - first));
  uint64_t value = low >> shift;
  if (shift + width > 64) value |= uint64_t{static_cast<uint8_t>(bytes[first + sizeof low])} << (64 - shift);
  return width == 64 ? value : value & ((uint64_t{1} << width) - 1);
}

[[noreturn]] void fail_ended(std::string_view bytes, const ParquetPlace& place) {
  fail_damaged(place, "its packed numbers end after ", bytes.size(), " bytes");
}

uint64_t varint_at(std::string_view bytes, size_t& at, const ParquetPlace& place) {
  const std::optional<uint64_t> value = read_varint([&] {
    if (at == bytes.size()) fail_ended(bytes, place);
    return static_cast<uint8_t>(bytes[at++]);
  });
  if (!value) fail_damaged(place, "found a number of more than 64 bits");
  return *value;
}

}  // namespace

int bits_for(uint32_t most) {
  return static_cast<int>(std::bit_width(most));
}

RunDecoder::RunDecoder(std::string_view bytes, int width, const ParquetPlace& place)
    : bytes_(bytes), place_(&place), width_(width) {
  if (width < 0 || width > 32) fail_damaged(place, "found numbers of ", width, " bits, wanted at most 32");
}

uint64_t RunDecoder::varint() {
  return varint_at(bytes_, at_, *place_);
}

/// Reads the head of the next run that is not empty.
void RunDecoder::begin_run() {
  if (width_ == 0 && at_ == bytes_.size()) {  // nothing is stored where only one value is possible
    packed_ = false;
    value_ = 0;
    left_ = UINT64_MAX;
    return;
  }
  while (left_ == 0) {
    const uint64_t head = varint();
    packed_ = (head & 1) != 0;
    left_ = head >> 1;
    const uint64_t room = bytes_.size() - at_, value_bytes = static_cast<uint64_t>(width_ + 7) / 8;
    if (packed_) {
      // The last group may be cut off behind its last number.
      const uint64_t groups = std::min<uint64_t>(left_, UINT32_MAX),
                     bytes = groups * static_cast<uint64_t>(width_);
      bit_ = at_ * uint64_t{8};
      left_ = width_ == 0 || bytes <= room ? groups * 8 : room * 8 / static_cast<uint64_t>(width_);
      at_ += static_cast<size_t>(std::min(bytes, room));
      if (left_ == 0 && groups > 0) fail_ended(bytes_, *place_);
    } else {
      if (value_bytes > room) fail_ended(bytes_, *place_);
      value_ = 0;
      std::memcpy(&value_, bytes_.data() + at_, value_bytes);
      at_ += static_cast<size_t>(value_bytes);
    }
  }
}

uint32_t RunDecoder::unpack() {
  const uint64_t bit = bit_;
  bit_ += static_cast<uint64_t>(width_);
  return static_cast<uint32_t>(bits_at(bytes_, bit, width_));
}

DeltaDecoder::DeltaDecoder(std::string_view bytes, const ParquetPlace& place) : bytes_(bytes), place_(place) {
  block_ = varint();
  miniblocks_ = varint();
  count_ = varint();
  value_ = from_zigzag(varint());
  if (miniblocks_ == 0 || miniblocks_ > kMostMiniblocks || block_ % miniblocks_ != 0 ||
      block_ / miniblocks_ % 8 != 0 || block_ == 0 || block_ > kMostInBlock ||
      count_ > (bytes.size() + 1) * kMostInBlock)
    fail_damaged(place, "found ", count_, " differences in blocks of ", block_, " in ", miniblocks_,
                 " parts");
  each_ = block_ / miniblocks_;
  miniblock_ = miniblocks_;
}

uint64_t DeltaDecoder::varint() {
  return varint_at(bytes_, at_, place_);
}

void DeltaDecoder::begin_block() {
  least_ = from_zigzag(varint());
  if (bytes_.size() - at_ < miniblocks_)
    fail_damaged(place_, "its differences end after ", bytes_.size(), " bytes");
  std::memcpy(widths_.data(), bytes_.data() + at_, miniblocks_);
  at_ += static_cast<size_t>(miniblocks_);
  miniblock_ = 0;
}

/// Takes the bytes of the next miniblock. The last one has all of its bytes, whatever number of its values
/// counts; miniblocks behind it have none.
void DeltaDecoder::begin_miniblock() {
  if (miniblock_ == miniblocks_) begin_block();
  width_ = widths_[miniblock_++];
  const uint64_t bytes = each_ / 8 * static_cast<uint64_t>(width_);
  if (width_ > 64 || bytes > bytes_.size() - at_)
    fail_damaged(place_, "found ", each_, " differences of ", width_, " bits with ", bytes_.size() - at_,
                 " bytes left");
  bit_ = at_ * uint64_t{8};
  at_ += static_cast<size_t>(bytes);
  left_ = each_;
}

uint64_t DeltaDecoder::unpack() {
  if (left_ == 0) begin_miniblock();
  --left_;
  const uint64_t bit = bit_;
  bit_ += static_cast<uint64_t>(width_);
  return bits_at(bytes_, bit, width_);
}

int64_t DeltaDecoder::next() {
  if (taken_ == count_) fail_damaged(place_, "found more values than the ", count_, " stored differences");
  if (taken_++ > 0) {
    const uint64_t more = unpack();  // which may begin the block that least_ is of
    // sums wrap around, as the format wants it
    value_ = static_cast<int64_t>(static_cast<uint64_t>(value_) + static_cast<uint64_t>(least_) + more);
  }
  return value_;
}

size_t DeltaDecoder::size() {
  if (taken_ == 0 && count_ > 0) taken_ = 1;  // the first number is in the head
  while (taken_ < count_) {
    if (left_ == 0) begin_miniblock();
    const uint64_t passed = std::min(left_, count_ - taken_);
    left_ -= passed;
    taken_ += passed;
  }
  return at_;
}

}  // namespace megalith
