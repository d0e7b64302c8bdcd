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

void PieceTable::put(const PieceKey& key, std::span<const int32_t> ids) {
  if (ids.empty()) return;
  Entry& entry = free_entry(key);
  entry.key = {key.low, key.high | uint64_t{ids.size()} << PieceKey::kCountShift};
  const size_t bytes = kIdBytes / most_ids_;
  for (size_t i = 0; i < ids.size(); ++i) std::memcpy(&entry.ids[i * bytes], &ids[i], bytes);
}

void PieceTable::put(const PieceKey& key, LongPieceCache::Ref ids) {
  Entry& entry = free_entry(key);
  entry.key = {key.low, key.high | uint64_t{kMore} << PieceKey::kCountShift};
  std::memcpy(entry.ids.data(), &ids, sizeof ids);
}

}  // namespace megalith
