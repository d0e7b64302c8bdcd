#include "libcore/text/bpe/cache/token_cache.h"

#include <array>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

using Ids = std::vector<int32_t>;

using Guard = Epochs::ReadGuard;

TEST(Epochs, WaitForGuardsThatHadBegunAndForNoOthers) {
  Epochs epochs;
  Epochs::Reader& first = epochs.join();
  Epochs::Reader& second = epochs.join();
  EXPECT_TRUE(epochs.begin_grace_period().over());
  auto of_first = std::make_unique<Guard>(first);
  Epochs::GracePeriod grace = epochs.begin_grace_period();
  EXPECT_FALSE(grace.over());
  auto of_second = std::make_unique<Guard>(second);
  of_first.reset();
  of_first = std::make_unique<Guard>(first);  // another guard of the same reader
  EXPECT_TRUE(grace.over());
  grace = epochs.begin_grace_period();
  Epochs::Reader& third = epochs.join();
  const Guard of_third(third);
  of_first.reset();
  EXPECT_FALSE(grace.over());
  of_second.reset();
  EXPECT_TRUE(grace.over());
  EXPECT_FALSE(epochs.begin_grace_period().over());
}

TEST(Epochs, WaitForAnyNumberOfGuards) {
  Epochs epochs;
  std::vector<std::unique_ptr<Guard>> guards;
  for (int i = 0; i < 70; ++i) guards.push_back(std::make_unique<Guard>(epochs.join()));
  Epochs::GracePeriod from_first = epochs.begin_grace_period(), from_last = epochs.begin_grace_period();
  for (auto& guard : guards) {
    EXPECT_FALSE(from_first.over());
    guard.reset();
  }
  EXPECT_TRUE(from_first.over());
  for (int i = 0; i < 70; ++i) guards[static_cast<size_t>(i)] = std::make_unique<Guard>(epochs.join());
  EXPECT_TRUE(from_last.over()) << "these guards began later";
  from_last = epochs.begin_grace_period();
  for (; !guards.empty(); guards.pop_back()) EXPECT_FALSE(from_last.over());
  EXPECT_TRUE(from_last.over());
}

TEST(Epochs, GiveAReaderThatLeftToTheNext) {
  Epochs epochs;
  Epochs::Reader& first = epochs.join();
  EXPECT_NE(&epochs.join(), &first);
  epochs.leave(first);
  EXPECT_EQ(&epochs.join(), &first);
}

TEST(TokenCache, HasALineForEach384BytesOfTextWithinBounds) {
  const auto bits = [](uint64_t bytes, size_t seeds) {
    return TokenCache::Size::for_text(bytes, seeds).table_bits;
  };
  EXPECT_EQ(bits(201'028, 50'257), 17);
  EXPECT_EQ(bits(201'027, 50'257), 14) << "no seeds";
  EXPECT_EQ(bits(0, 50'257), 14);
  EXPECT_EQ(bits(0, 0), 17);
  EXPECT_EQ(bits(uint64_t{384} << 18, 50'257), 18);
  EXPECT_EQ(bits((uint64_t{384} << 18) - 1, 50'257), 17);
  EXPECT_EQ(bits(uint64_t{384} << 19, 50'257), 19);
  EXPECT_EQ(bits(UINT64_MAX, 50'257), 19);
  EXPECT_EQ(bits(800'000, 200'000), 18) << "a line for each seed";
}

/// Pieces that share one line of the table; the third one must evict another.
struct OneLine {
  TokenCache memory{{.table_bits = 1, .long_bytes = 4096}, false};
  TokenCacheWriter writer{memory};
  std::vector<std::string> pieces;

  OneLine() {
    const auto line = [&](const std::string& piece) { return &memory.table.line(PieceKey::of(piece)); };
    for (int i = 0; pieces.size() < 4; ++i)
      if (const std::string piece = std::to_string(i); line(piece) == line("0")) pieces.push_back(piece);
  }

  static void keep(TokenCacheWriter& writer, const std::string& piece, const Ids& ids) {
    MergedPiece merged{};
    merged.count = ids.size();
    std::copy(ids.begin(), ids.end(), merged.ids.begin());
    const PieceKey key = PieceKey::of(piece);
    writer.keep({&key, 1}, &merged);
  }
  void keep(const std::string& piece, const Ids& ids) { keep(writer, piece, ids); }
  const PieceTable::Entry* find(const std::string& piece) const {
    const PieceKey key = PieceKey::of(piece);
    for (const PieceTable::Entry& entry : memory.table.line(key).entries)
      if (entry.is(key)) return &entry;
    return nullptr;
  }
  Ids ids(const std::string& piece) const {
    const PieceTable::Entry* const entry = find(piece);
    return entry ? ids_in(*entry) : Ids{};
  }
  static Ids ids_in(const PieceTable::Entry& entry) {
    std::array<int32_t, 8> all;
    const auto packed = entry.ids<uint16_t>();
    packed.write(all.data());
    return Ids(all.begin(), all.begin() + static_cast<ptrdiff_t>(packed.count()));
  }
};

TEST(TokenCacheWriter, PushesOutWhatCameLaterWhenNobodyReads) {
  OneLine line;
  line.keep(line.pieces[0], {1});
  line.keep(line.pieces[1], {2, 2});
  line.keep(line.pieces[2], {3});
  EXPECT_EQ(line.ids(line.pieces[0]), Ids{1});
  EXPECT_EQ(line.ids(line.pieces[1]), Ids{});
  EXPECT_EQ(line.ids(line.pieces[2]), Ids{3});
}

TEST(TokenCacheWriter, ChangesNoEntryThatAGuardMaySee) {
  OneLine line;
  Epochs::Reader& reader = line.memory.epochs.join();
  line.keep(line.pieces[0], {1});
  line.keep(line.pieces[1], {2, 2});
  auto guard = std::make_unique<Guard>(reader);
  const PieceTable::Entry* const seen = line.find(line.pieces[1]);
  ASSERT_NE(seen, nullptr);
  line.keep(line.pieces[2], {3});
  line.keep(line.pieces[3], {4});
  EXPECT_EQ(line.find(line.pieces[1]), nullptr);
  EXPECT_EQ(line.find(line.pieces[2]), nullptr);
  EXPECT_EQ(OneLine::ids_in(*seen), (Ids{2, 2}));
  guard.reset();
  line.keep(line.pieces[0], {1});  // adds nothing new
  EXPECT_EQ(line.ids(line.pieces[2]), Ids{3});
  EXPECT_EQ(line.find(line.pieces[3]), nullptr);
  line.keep(line.pieces[3], {4});
  EXPECT_EQ(line.ids(line.pieces[3]), Ids{4});
  EXPECT_EQ(line.ids(line.pieces[0]), Ids{1});
}

TEST(TokenCacheWriter, PutsBackWhatItCouldNotReplace) {
  OneLine line;
  line.keep(line.pieces[0], {1});
  line.keep(line.pieces[1], {2});
  {
    const Guard guard(line.memory.epochs.join());
    TokenCacheWriter another(line.memory);
    OneLine::keep(another, line.pieces[2], {3});
    another.fill();
    EXPECT_EQ(line.find(line.pieces[1]), nullptr);
  }
  EXPECT_EQ(line.ids(line.pieces[1]), Ids{2});
  EXPECT_EQ(line.find(line.pieces[2]), nullptr);
}

TEST(TokenCacheWriter, KeepsNothingTwice) {
  OneLine line;
  line.keep(line.pieces[0], Ids(12, 5));
  const auto ref = line.memory.table.find_far(PieceKey::of(line.pieces[0]));
  line.keep(line.pieces[0], Ids(12, 5));
  const auto again = line.memory.table.find_far(PieceKey::of(line.pieces[0]));
  ASSERT_TRUE(ref.has_value() && again.has_value());
  EXPECT_EQ(again->at, ref->at);
  EXPECT_EQ(line.memory.longer.append(Ids(12, 5)).at, ref->at + 2 + 12);
}

/// For the thread sanitizer: pieces that one thread keeps evict pieces that another thread looks up.
TEST(TokenCacheWriter, MayKeepManyIdsBesideOthers) {
  OneLine line;
  const auto keep_many = [&line](unsigned seed) {
    std::mt19937 random(seed);
    TokenCacheWriter writer(line.memory);
    for (int i = 0; i < 3000; ++i)
      OneLine::keep(writer, line.pieces[random() % line.pieces.size()], Ids(8 + random() % 5, 7));
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned seed = 1; seed <= 3; ++seed) threads.emplace_back(keep_many, seed);
  }
  size_t known = 0;
  for (const std::string& piece : line.pieces) {
    const auto ref = line.memory.table.find_far(PieceKey::of(piece));
    if (!ref) continue;
    ++known;
    for (const int32_t id : line.memory.longer.get(*ref)) EXPECT_EQ(id, 7);
  }
  EXPECT_EQ(known, 2u);
}

TEST(TokenCacheWriter, KeepsManyIdsElsewhere) {
  OneLine line;
  line.keep("many", Ids(12, 5));
  const auto ref = line.memory.table.find_far(PieceKey::of("many"));
  ASSERT_TRUE(ref.has_value());
  const auto ids = line.memory.longer.get(*ref);
  EXPECT_EQ(Ids(ids.begin(), ids.end()), Ids(12, 5));
}

}  // namespace
}  // namespace megalith
