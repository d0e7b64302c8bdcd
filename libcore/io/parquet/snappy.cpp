#include "libcore/io/parquet/snappy.h"

#include <cstring>

namespace megalith {
namespace {

/// What a block consists of: bytes to take from it, or a copy of earlier output.
struct Element {
  bool copy = false;
  uint64_t length = 0, distance = 0;
};

class Block {
 public:
  explicit Block(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  std::optional<uint64_t> varint() {
    constexpr int kMost = 35;  // bits in five bytes
    uint64_t value = 0;
    for (int shift = 0; shift < kMost && at_ < end_; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value <= UINT32_MAX ? std::optional(value) : std::nullopt;
    }
    return std::nullopt;
  }

  /// The next element; nothing if its head is cut off.
  std::optional<Element> next() {
    constexpr unsigned kLiteral = 0, kNear = 1, kFar = 2, kShortest = 60;
    const unsigned tag = static_cast<uint8_t>(*at_++);
    const unsigned kind = tag & 3U, rest = tag >> 2U;
    if (kind == kLiteral) {
      if (rest < kShortest) return Element{false, rest + 1};
      const auto length = number(rest - kShortest + 1);
      return length ? std::optional(Element{false, *length + 1}) : std::nullopt;
    }
    const auto distance = number(kind == kNear ? 1 : kind == kFar ? 2 : 4);
    if (!distance) return std::nullopt;
    if (kind != kNear) return Element{true, rest + 1, *distance};
    return Element{true, (rest & 7U) + 4, *distance | uint64_t{tag >> 5U} << 8};
  }

  bool ended() const { return at_ == end_; }
  uint64_t left() const { return static_cast<uint64_t>(end_ - at_); }
  const char* take(uint64_t bytes) {
    const char* const begin = at_;
    at_ += bytes;
    return begin;
  }

 private:
  std::optional<uint64_t> number(unsigned bytes) {  // little-endian, as we are
    if (left() < bytes) return std::nullopt;
    uint64_t value = 0;
    std::memcpy(&value, take(bytes), bytes);
    return value;
  }
  const char* at_;
  const char* end_;
};

/// Copies bytes that may overlap: then they repeat.
void copy_repeated(char* out, uint64_t distance, uint64_t length) {
  const char* from = out - distance;
  if (distance >= length) {
    std::memcpy(out, from, length);
    return;
  }
  for (uint64_t i = 0; i < length; ++i) out[i] = from[i];
}

}  // namespace

std::optional<uint64_t> snappy_size(std::string_view block) {
  return Block(block).varint();
}

const char* decompress_snappy(std::string_view block, char* out) {
  Block in(block);
  const std::optional<uint64_t> size = in.varint();
  if (!size) return "its length is missing";
  uint64_t made = 0;
  while (!in.ended()) {
    const std::optional<Element> element = in.next();
    if (!element) return "it ends inside an element";
    if (element->length > *size - made) return "it holds more bytes than its length says";
    if (!element->copy) {
      if (element->length > in.left()) return "it ends inside an element";
      std::memcpy(out + made, in.take(element->length), element->length);
    } else {
      if (element->distance == 0 || element->distance > made) return "a copy begins before its data";
      copy_repeated(out + made, element->distance, element->length);
    }
    made += element->length;
  }
  return made == *size ? nullptr : "it holds fewer bytes than its length says";
}

}  // namespace megalith
