#include "libcore/text/piece_cache.h"

#include <algorithm>

namespace megalith {
namespace {

constexpr size_t kBytesPerSlot = 64;  // about what a record takes

}  // namespace

LongPieceCache::LongPieceCache(size_t bytes)
    : memory_(bytes),
      slot_memory_(std::bit_ceil(bytes / kBytesPerSlot) * sizeof(Slot)),
      words_(memory_.as<int32_t>()),
      slots_(slot_memory_.as<Slot>()) {}

uint64_t LongPieceCache::hash(std::string_view piece) {
  uint64_t mixed = piece.size();
  const auto mix = [&](uint64_t word) {
    mixed = (mixed ^ word) * 0x9E3779B97F4A7C15u;
    mixed ^= mixed >> 32;
  };
  const char* at = piece.data();
  size_t left = piece.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    mix(word);
  }
  uint64_t word = 0;
  std::memcpy(&word, at, left);
  mix(word);
  return mixed;
}

std::span<const int32_t> LongPieceCache::find(std::string_view piece) const {
  const uint64_t hashed = hash(piece);
  const Slot& found = slot(hashed);
  if (found.at == 0 || found.tag != hashed >> 32) return {};
  const int32_t* const record = &words_[found.at];
  const auto bytes = static_cast<size_t>(record[0]), ids = static_cast<size_t>(record[1]);
  if (bytes != piece.size() || std::memcmp(record + 2 + ids, piece.data(), bytes) != 0) return {};
  return {record + 2, ids};
}

void LongPieceCache::put(std::string_view piece, std::span<const int32_t> ids) {
  if (piece.size() > kLongest || ids.empty()) return;
  const uint32_t at = add_record(piece, ids);
  const uint64_t hashed = hash(piece);
  slots_[hashed & (slots_.size() - 1)] = {static_cast<uint32_t>(hashed >> 32), at};
}

LongPieceCache::Ref LongPieceCache::append(std::span<const int32_t> ids) {
  const uint32_t at = add_record({}, ids);
  return {at, generation_};
}

std::span<const int32_t> LongPieceCache::get(Ref ref) const {
  if (ref.generation != generation_) return {};
  return {&words_[ref.at + 2], static_cast<size_t>(words_[ref.at + 1])};
}

uint32_t LongPieceCache::add_record(std::string_view piece, std::span<const int32_t> ids) {
  const size_t words = 2 + ids.size() + (piece.size() + 3) / 4;
  if (used_ + words > words_.size()) {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    used_ = 1;
    ++generation_;
  }
  int32_t* const record = &words_[used_];
  record[0] = static_cast<int32_t>(piece.size());
  record[1] = static_cast<int32_t>(ids.size());
  std::memcpy(record + 2, ids.data(), ids.size_bytes());
  if (!piece.empty()) std::memcpy(record + 2 + ids.size(), piece.data(), piece.size());
  const auto at = static_cast<uint32_t>(used_);
  used_ += words;
  return at;
}

template <class Packed>
void PieceTable::put(Line& line, const PieceKey& key, const Packed& packed) {
  std::array<Entry, 2>& entries = line.entries;
  Entry& entry = entries[entries[0].key != PieceKey{} && entries[0].key != key];
  entry.key = key;
  std::memcpy(entry.packed.data(), &packed, sizeof packed);
}

void PieceTable::put(const PieceKey& key, std::span<const int32_t> ids) {
  if (ids.empty() || ids.size() > most_ids()) return;
  Line& line = lines_[place(key)];
  if (wide_)
    put(line, key, PackedIds<int32_t>::of(ids));
  else
    put(line, key, PackedIds<uint16_t>::of(ids));
}

void PieceTable::put_far(const PieceKey& key, LongPieceCache::Ref ids) {
  put(lines_[place(key)], far(key), ids);
}

std::optional<LongPieceCache::Ref> PieceTable::find_far(const PieceKey& key) const {
  for (const Entry& entry : line(key).entries)
    if (entry.key == far(key)) {
      LongPieceCache::Ref ref;
      std::memcpy(&ref, entry.packed.data(), sizeof ref);
      return ref;
    }
  return std::nullopt;
}

}  // namespace megalith
