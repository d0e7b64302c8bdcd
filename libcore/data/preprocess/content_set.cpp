#include "libcore/data/preprocess/content_set.h"

#include "libcore/hash/xxh64.h"

namespace megalith {
namespace {

constexpr uint64_t kSecondSeed = 0x9E3779B97F4A7C15;
constexpr size_t kFirstSlots = 64;

/// Replaces the hash 0, which marks a free slot, by another hash.
ContentHash not_zero(ContentHash hash) {
  if (hash == ContentHash{}) hash.low = 1;
  return hash;
}

}  // namespace

ContentHash content_hash(std::span<const std::string_view> texts, ContentHash before) {
  Xxh64 high(before.high), low(before.low ^ kSecondSeed);
  const auto add = [&](const void* data, size_t bytes) {
    high.update(data, bytes);
    low.update(data, bytes);
  };
  const uint64_t count = texts.size();
  add(&count, sizeof count);
  for (const std::string_view text : texts) {
    const uint64_t size = text.size();
    add(&size, sizeof size);
    add(text.data(), text.size());
  }
  return {high.digest(), low.digest()};
}

bool ContentSet::insert(ContentHash hash) {
  hash = not_zero(hash);
  Table& table = tables_[hash.high >> 56];
  if (table.used * 10 >= table.slots.size() * 9) grow(table);
  if (!place(table.slots, hash)) return false;
  ++table.used;
  ++size_;
  return true;
}

bool ContentSet::has(ContentHash hash) const {
  hash = not_zero(hash);
  const std::vector<ContentHash>& slots = tables_[hash.high >> 56].slots;
  return !slots.empty() && slots[find(slots, hash)] == hash;
}

/// The index of the slot that holds the hash, or of the free slot where it belongs. Linear probing begins at
/// a slot that depends on the low half of the hash, since the high half chose the table.
size_t ContentSet::find(const std::vector<ContentHash>& slots, ContentHash hash) {
  size_t at = static_cast<size_t>((static_cast<unsigned __int128>(hash.low) * slots.size()) >> 64);
  while (slots[at] != ContentHash{} && slots[at] != hash)
    if (++at == slots.size()) at = 0;
  return at;
}

bool ContentSet::place(std::vector<ContentHash>& slots, ContentHash hash) {
  ContentHash& slot = slots[find(slots, hash)];
  if (slot == hash) return false;
  slot = hash;
  return true;
}

void ContentSet::grow(Table& table) {
  const size_t size = table.slots.empty() ? kFirstSlots : table.slots.size() + table.slots.size() / 4;
  std::vector<ContentHash> larger(size);
  for (const ContentHash& hash : table.slots)
    if (hash != ContentHash{}) place(larger, hash);
  table.slots = std::move(larger);
}

uint64_t ContentSet::bytes() const {
  uint64_t total = 0;
  for (const Table& table : tables_) total += table.slots.capacity() * sizeof(ContentHash);
  return total;
}

}  // namespace megalith
