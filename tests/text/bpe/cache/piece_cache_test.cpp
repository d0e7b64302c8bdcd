#include "libcore/text/bpe/cache/piece_cache.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

using Ids = std::vector<int32_t>;

template <class Stored>
Ids ids_in(const PieceTable::Entry& entry) {
  std::array<Stored, 8> ids;
  const PackedIds<Stored> packed = entry.ids<Stored>();
  packed.write(ids.data());
  return Ids(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(packed.count()));
}

template <class Stored = int32_t>
Ids found(const PieceTable& table, const std::string& piece) {
  const PieceKey key = PieceKey::of(piece);
  for (const PieceTable::Entry& entry : table.line(key).entries)
    if (entry.key == key) return ids_in<Stored>(entry);
  return {};
}

bool add(PieceTable& table, const std::string& piece, const Ids& ids) {
  return table.add(PieceKey::of(piece), table.pack(ids));
}

Ids found_far(const PieceTable& table, const LongPieceCache& cache, const std::string& piece) {
  const auto ids = cache.get(table.find_far(PieceKey::of(piece)).value_or(LongPieceCache::Ref{}));
  return Ids(ids.begin(), ids.end());
}

TEST(PieceKey, IsTheSameAloneAndInsideAText) {
  for (size_t bytes = 1; bytes <= 15; ++bytes) {
    const std::string piece = std::string("abcdefghijklmno").substr(0, bytes),
                      text = piece + std::string(16, '#');
    const PieceKey alone = PieceKey::of(piece), inside = PieceKey::of(text.data(), bytes);
    EXPECT_EQ(alone.low, inside.low);
    EXPECT_EQ(alone.high, inside.high);
    EXPECT_EQ(alone.size(), bytes);
  }
}

TEST(PieceTable, FindsPiecesOfEveryLengthThatItKeeps) {
  PieceTable table(12, true);
  for (size_t bytes = 1; bytes <= 15; ++bytes)
    EXPECT_TRUE(add(table, std::string(bytes, 'x'), {static_cast<int32_t>(bytes), 7}));
  for (size_t bytes = 1; bytes <= 15; ++bytes)
    EXPECT_EQ(found(table, std::string(bytes, 'x')), (Ids{static_cast<int32_t>(bytes), 7}));
  for (size_t bytes = 16; bytes <= 40; ++bytes) EXPECT_EQ(found(table, std::string(bytes, 'x')), Ids{});
  EXPECT_EQ(found(table, std::string(15, 'y')), Ids{});
}

template <class Stored>
void keeps_as_many_ids_as_have_room(int32_t most, int32_t greatest_id) {
  PieceTable table(12, sizeof(Stored) == 4);
  ASSERT_EQ(table.max_ids(), static_cast<size_t>(most));
  for (int32_t ids = 1; ids <= most; ++ids)
    EXPECT_TRUE(add(table, std::to_string(ids), Ids(static_cast<size_t>(ids), greatest_id)));
  for (int32_t ids = 1; ids <= most; ++ids)
    EXPECT_EQ(found<Stored>(table, std::to_string(ids)), Ids(static_cast<size_t>(ids), greatest_id));
  EXPECT_EQ(found<Stored>(table, std::to_string(most + 1)), Ids{});
}

TEST(PieceTable, KeepsAsManyIdsAsHaveRoom) {
  keeps_as_many_ids_as_have_room<uint16_t>(7, 65535);
  keeps_as_many_ids_as_have_room<int32_t>(4, (1 << 21) - 1);
}

TEST(PieceTable, KnowsWhereTheIdsAreOfPiecesThatHaveMore) {
  PieceTable table(12, false);
  const Epochs epochs;
  LongPieceCache cache(4096, epochs);
  const PieceKey key = PieceKey::of("many");
  EXPECT_TRUE(table.add(PieceTable::far(key), PieceTable::pack(cache.append(Ids(12, 5)))));
  EXPECT_EQ(found_far(table, cache, "many"), Ids(12, 5));
  EXPECT_EQ(found<uint16_t>(table, "many"), Ids{});
  EXPECT_EQ(found_far(table, cache, "others"), Ids{});
  for (int i = 0; i < 200; ++i) cache.append(Ids(15, 6));  // pushes out all earlier ids
  EXPECT_EQ(found_far(table, cache, "many"), Ids{});
  table.move_far(key, cache.append(Ids(13, 7)));
  EXPECT_EQ(found_far(table, cache, "many"), Ids(13, 7));
}

TEST(PieceTable, TellsZeroBytesFromNone) {
  PieceTable table(12, true);
  EXPECT_TRUE(add(table, "a", {9}));
  EXPECT_EQ(found(table, std::string("a\0", 2)), Ids{});
  EXPECT_EQ(found(table, std::string(1, '\0')), Ids{});
  EXPECT_EQ(found(table, std::string(15, '\0')), Ids{});
}

TEST(PieceTable, NeverGivesAnotherPiecesIds) {
  PieceTable table(1, true);  // 4 entries for 2000 pieces
  size_t hits = 0;
  for (int32_t i = 0; i < 2000; ++i) {
    const std::string piece = std::to_string(i * 7919 % 2000);
    const PieceKey key = PieceKey::of(piece);
    if (!add(table, piece, {std::stoi(piece)})) {
      PieceTable::Entry* const entry = table.take_out(key).entry;
      ASSERT_NE(entry, nullptr);
      ASSERT_EQ(found(table, piece), Ids{});
      ASSERT_EQ(table.take_out(key).entry, nullptr);
      PieceTable::fill(*entry, key, table.pack(Ids{std::stoi(piece)}));
    }
    ASSERT_EQ(found(table, piece), Ids{std::stoi(piece)});
    for (int32_t other = 0; other < 2000; other += 97)
      if (const Ids ids = found(table, std::to_string(other)); !ids.empty()) {
        EXPECT_EQ(ids, Ids{other});
        ++hits;
      }
  }
  EXPECT_GT(hits, 0u);
}

TEST(LongPieceCache, KeepsPiecesOfAllLengthsAndTheirIds) {
  const Epochs epochs;
  LongPieceCache cache(size_t{1} << 20, epochs);
  const auto ids_for = [](size_t bytes) { return Ids(1 + bytes % 50, static_cast<int32_t>(bytes)); };
  for (size_t bytes = 1; bytes <= 600; ++bytes) cache.put(std::string(bytes, 'x'), ids_for(bytes));
  size_t kept = 0;
  for (size_t bytes = 1; bytes <= 600; ++bytes) {
    const auto ids = cache.find(std::string(bytes, 'x'));
    if (!ids.empty()) {
      EXPECT_EQ(Ids(ids.begin(), ids.end()), ids_for(bytes));
      EXPECT_LE(bytes, LongPieceCache::kLongest);
      ++kept;
    }
    EXPECT_TRUE(cache.find(std::string(bytes, 'y')).empty());
  }
  EXPECT_GE(kept, 490U);  // of 512 pieces: two that share a slot replace each other
}

TEST(LongPieceCache, GivesRightIdsWhenItHasBeenFull) {
  const Epochs epochs;
  LongPieceCache cache(4096, epochs);
  for (int32_t i = 0; i < 20'000; ++i) {
    const int32_t number = i % 300;
    const std::string piece = "a piece with a number " + std::to_string(number);
    if (cache.find(piece).empty()) cache.put(piece, Ids(5, number));
    const auto ids = cache.find(piece);
    ASSERT_EQ(Ids(ids.begin(), ids.end()), Ids(5, number));
  }
  cache.put("last", Ids{1});
  EXPECT_EQ(cache.find("last").size(), 1U);
}

// Ids found under a guard stay unchanged until the guard ends, whatever is added meanwhile. After that there
// is room again.
TEST(LongPieceCache, ForgetsNothingThatAGuardMaySee) {
  Epochs epochs;
  LongPieceCache cache(4096, epochs);
  cache.put("a piece that is found", Ids(5, 1));
  auto guard = std::make_unique<Epochs::ReadGuard>(epochs.join());
  const auto found = cache.find("a piece that is found");
  const LongPieceCache::Ref ref = cache.append(Ids(9, 2));
  const auto far = cache.get(ref);
  size_t appended = 0;
  while (appended < 1000 && cache.append(Ids(20, 3)).at != 0) ++appended;
  EXPECT_LT(appended, 4096 / (22 * sizeof(int32_t)));
  EXPECT_EQ(Ids(found.begin(), found.end()), Ids(5, 1));
  EXPECT_EQ(Ids(far.begin(), far.end()), Ids(9, 2));
  guard.reset();
  for (int i = 0; i < 100; ++i) EXPECT_NE(cache.append(Ids(20, 3)).at, 0U);
  EXPECT_TRUE(cache.find("a piece that is found").empty());
  EXPECT_TRUE(cache.get(ref).empty());
}

}  // namespace
}  // namespace megalith
