#include "libcore/text/bpe/cache/piece_cache.h"

#include <algorithm>

namespace megalith {
namespace {

constexpr size_t kBytesPerSlot = 64;  // about how many bytes a record has

}  // namespace

LongPieceCache::LongPieceCache(size_t bytes, const Epochs& epochs)
    : memory_(bytes),
      slot_memory_(std::bit_ceil(bytes / kBytesPerSlot) * sizeof(uint64_t)),
      words_(memory_.as<int32_t>()),
      slots_(slot_memory_.as<uint64_t>()),
      epochs_(epochs) {}

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
  const uint64_t hashed = hash(piece), found = slot(hashed).load(std::memory_order_acquire);
  if (found == 0 || (found ^ hashed) >> kTagShift != 0) return {};
  const int32_t* const record = &words_[static_cast<uint32_t>(found)];
  const auto bytes = static_cast<size_t>(record[0]), ids = static_cast<size_t>(record[1]);
  if (bytes != piece.size() || std::memcmp(record + 2 + ids, piece.data(), bytes) != 0) return {};
  return {record + 2, ids};
}

/// Never waits for another thread that is adding. A piece that is not kept now will be encoded again, and may
/// be kept then.
void LongPieceCache::put(std::string_view piece, std::span<const int32_t> ids) {
  if (piece.size() > kLongest || ids.empty()) return;
  const uint64_t hashed = hash(piece);
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  const Ref record = add_record(piece, ids);
  if (record.at != 0)
    slot(hashed).store(hashed >> kTagShift << kTagShift | record.at, std::memory_order_release);
}

LongPieceCache::Ref LongPieceCache::append(std::span<const int32_t> ids) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock ? add_record({}, ids) : Ref{};
}

std::span<const int32_t> LongPieceCache::get(Ref ref) const {
  if (ref.at == 0 || ref.generation < oldest_.load()) return {};
  return {&words_[ref.at + 2], static_cast<size_t>(words_[ref.at + 1])};
}

LongPieceCache::Ref LongPieceCache::add_record(std::string_view piece, std::span<const int32_t> ids) {
  const size_t words = 2 + ids.size() + (piece.size() + 3) / 4, room = words_.size() / kParts;
  if (used_ + words > room && (1 + words > room || !open_part())) return {};
  const size_t at = generation_ % kParts * room + used_;
  used_ += words;
  int32_t* const record = &words_[at];
  record[0] = static_cast<int32_t>(piece.size());
  record[1] = static_cast<int32_t>(ids.size());
  std::memcpy(record + 2, ids.data(), ids.size_bytes());
  if (!piece.empty()) std::memcpy(record + 2 + ids.size(), piece.data(), piece.size());
  return {static_cast<uint32_t>(at), generation_};
}

/// Opens the part after the full one for writing. That part was already forgotten when the full one was
/// opened. Returns false while a guard from before that moment is alive, since its thread may still read the
/// part.
bool LongPieceCache::open_part() {
  if (!forgotten_.over()) return false;
  ++generation_;
  used_ = 1;
  if (generation_ + 1 > kParts) {
    oldest_.store(generation_ + 2 - kParts);
    forget_part((generation_ + 1) % kParts);
    forgotten_ = epochs_.begin_grace_period();
  }
  return true;
}

void LongPieceCache::forget_part(uint32_t part) {
  const size_t room = words_.size() / kParts;
  for (uint64_t& word : slots_) {
    const std::atomic_ref slot(word);
    const uint64_t found = slot.load(std::memory_order_relaxed);
    if (found != 0 && static_cast<uint32_t>(found) / room == part) slot.store(0);
  }
}

PieceTable::Packed PieceTable::pack(std::span<const int32_t> ids) const {
  return wide_ ? std::bit_cast<Packed>(PackedIds<int32_t>::of(ids))
               : std::bit_cast<Packed>(PackedIds<uint16_t>::of(ids));
}

PieceTable::Packed PieceTable::pack(LongPieceCache::Ref ref) {
  return std::bit_cast<Packed>(std::array<LongPieceCache::Ref, 2>{ref});
}

std::optional<LongPieceCache::Ref> PieceTable::find_far(const PieceKey& key) const {
  for (const Entry& entry : line(key).entries)
    if (entry.is(far(key)))
      return std::bit_cast<LongPieceCache::Ref>(
          __atomic_load_n(reinterpret_cast<const uint64_t*>(entry.packed.data()), __ATOMIC_ACQUIRE));
  return std::nullopt;
}

bool PieceTable::has(const PieceKey& key) const {
  const auto& entries = line(key).entries;
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.is(key); });
}

void PieceTable::move_far(const PieceKey& key, LongPieceCache::Ref ref) {
  for (Entry& entry : lines_[place(key)].entries)
    if (entry.is(far(key)))
      __atomic_store_n(reinterpret_cast<uint64_t*>(entry.packed.data()), std::bit_cast<uint64_t>(ref),
                       __ATOMIC_RELEASE);
}

bool PieceTable::add(const PieceKey& key, const Packed& ids) {
  for (Entry& entry : lines_[place(key)].entries) {
    const std::atomic_ref high(entry.key.high);
    uint64_t free = 0;
    if (high.load(std::memory_order_relaxed) == 0 && high.compare_exchange_strong(free, kBeingWritten)) {
      fill(entry, key, ids);
      return true;
    }
    if (entry.is(key)) return true;
  }
  return false;
}

PieceTable::TakenEntry PieceTable::take_out(const PieceKey& key) {
  Entry& entry = lines_[place(key)].entries.back();
  const uint64_t high = std::atomic_ref(entry.key.high).exchange(kBeingWritten);
  return high == kBeingWritten ? TakenEntry{} : TakenEntry{&entry, high};
}

void PieceTable::put_back(const TakenEntry& taken) {
  std::atomic_ref(taken.entry->key.high).store(taken.high, std::memory_order_release);
}

void PieceTable::fill(Entry& entry, const PieceKey& key, const Packed& ids) {
  entry.packed = ids;
  std::atomic_ref(entry.key.low).store(key.low, std::memory_order_relaxed);
  std::atomic_ref(entry.key.high).store(key.high, std::memory_order_release);
}

}  // namespace megalith
