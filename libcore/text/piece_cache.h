#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace megalith {

/// Ids of pretokens seen before: those of at most 15 bytes that have at most 4 ids, which is nearly all of
/// them. Two entries share a cache line; a new entry pushes out the older of its line, so the size is fixed.
/// One thread at a time.
class PieceCache {
 public:
  /// 2^bits lines of 64 bytes.
  explicit PieceCache(int bits) : lines_(size_t{1} << bits), shift_(64 - bits) {}

  /// The ids of `piece`, or an empty span. Lasts until the next put().
  std::span<const int32_t> find(std::string_view piece) const {
    if (piece.size() > kLongest) return {};
    const Key key = key_of(piece);
    const Line& line = lines_[place(key)];
    for (const Entry& entry : line.entries)
      if (entry.low == key.low && (entry.high & kKeyBits) == key.high)
        return {entry.ids, static_cast<size_t>(entry.high >> kCountShift)};
    return {};
  }

  void put(std::string_view piece, std::span<const int32_t> ids) {
    if (piece.size() > kLongest || ids.size() > kMostIds || ids.empty()) return;
    const Key key = key_of(piece);
    Line& line = lines_[place(key)];
    line.entries[1] = line.entries[0];
    Entry& entry = line.entries[0];
    entry.low = key.low;
    entry.high = key.high | uint64_t{ids.size()} << kCountShift;
    std::memcpy(entry.ids, ids.data(), ids.size_bytes());
  }

 private:
  static constexpr size_t kLongest = 15, kMostIds = 4;
  // The top byte of `high` holds the length (4 bits) and above it the number of ids; a free entry has length
  // 0.
  static constexpr int kLengthShift = 56, kCountShift = 60;
  static constexpr uint64_t kKeyBits = (uint64_t{1} << kCountShift) - 1;

  struct Key {
    uint64_t low, high;
  };
  struct Entry {
    uint64_t low = 0, high = 0;
    int32_t ids[kMostIds] = {};
  };
  struct alignas(64) Line {
    Entry entries[2];
  };

  static Key key_of(std::string_view piece) {
    Key key{0, 0};
    const size_t low = piece.size() < 8 ? piece.size() : 8;
    std::memcpy(&key.low, piece.data(), low);
    std::memcpy(&key.high, piece.data() + low, piece.size() - low);
    key.high |= uint64_t{piece.size()} << kLengthShift;
    return key;
  }
  size_t place(Key key) const {
    const uint64_t mixed = (key.low ^ (key.high >> 29) ^ (key.high << 35)) * 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(((mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93u) >> shift_);
  }

  std::vector<Line> lines_;
  int shift_;
};

}  // namespace megalith
