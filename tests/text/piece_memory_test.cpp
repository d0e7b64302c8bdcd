#include "libcore/text/piece_memory.h"

#include <array>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

using Ids = std::vector<int32_t>;

TEST(PieceReaders, WaitForTurnsThatHadBegunAndForNoOthers) {
  PieceReaders readers;
  PieceReaders::Reader& first = readers.join();
  PieceReaders::Reader& second = readers.join();
  PieceReaders::Grace grace;
  readers.ask(grace);
  EXPECT_TRUE(grace.over());
  first.begin_turn();
  readers.ask(grace);
  EXPECT_FALSE(grace.over());
  second.begin_turn();
  first.end_turn();
  first.begin_turn();  // another one
  EXPECT_TRUE(grace.over());
  readers.ask(grace);
  first.end_turn();
  EXPECT_FALSE(grace.over());
  second.end_turn();
  EXPECT_TRUE(grace.over());
}

TEST(PieceReaders, GiveAReaderThatLeftToTheNext) {
  PieceReaders readers;
  PieceReaders::Reader& first = readers.join();
  EXPECT_NE(&readers.join(), &first);
  readers.leave(first);
  EXPECT_EQ(&readers.join(), &first);
}

/// Pieces of one line of the table, of which the third must make another one give way.
struct OneLine {
  PieceMemory memory{{.table_bits = 1, .long_bytes = 4096}, false};
  PieceKeeper keeper{memory};
  std::vector<std::string> pieces;

  OneLine() {
    const auto line = [&](const std::string& piece) { return &memory.table.line(PieceKey::of(piece)); };
    for (int i = 0; pieces.size() < 4; ++i)
      if (const std::string piece = std::to_string(i); line(piece) == line("0")) pieces.push_back(piece);
  }

  static void keep(PieceKeeper& keeper, const std::string& piece, const Ids& ids) {
    MergedPiece merged{};
    merged.count = ids.size();
    std::copy(ids.begin(), ids.end(), merged.ids.begin());
    const PieceKey key = PieceKey::of(piece);
    keeper.keep({&key, 1}, &merged);
  }
  void keep(const std::string& piece, const Ids& ids) { keep(keeper, piece, ids); }
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

TEST(PieceKeeper, PushesOutWhatCameLaterWhenNobodyReads) {
  OneLine line;
  line.keep(line.pieces[0], {1});
  line.keep(line.pieces[1], {2, 2});
  line.keep(line.pieces[2], {3});
  EXPECT_EQ(line.ids(line.pieces[0]), Ids{1});
  EXPECT_EQ(line.ids(line.pieces[1]), Ids{});
  EXPECT_EQ(line.ids(line.pieces[2]), Ids{3});
}

TEST(PieceKeeper, ChangesNoEntryThatATurnMaySee) {
  OneLine line;
  PieceReaders::Reader& reader = line.memory.readers.join();
  line.keep(line.pieces[0], {1});
  line.keep(line.pieces[1], {2, 2});
  reader.begin_turn();
  const PieceTable::Entry* const seen = line.find(line.pieces[1]);
  ASSERT_NE(seen, nullptr);
  line.keep(line.pieces[2], {3});
  line.keep(line.pieces[3], {4});
  EXPECT_EQ(line.find(line.pieces[1]), nullptr);
  EXPECT_EQ(line.find(line.pieces[2]), nullptr);
  EXPECT_EQ(OneLine::ids_in(*seen), (Ids{2, 2}));
  reader.end_turn();
  line.keep(line.pieces[0], {1});  // nothing new
  EXPECT_EQ(line.ids(line.pieces[2]), Ids{3});
  EXPECT_EQ(line.find(line.pieces[3]), nullptr);
  line.keep(line.pieces[3], {4});
  EXPECT_EQ(line.ids(line.pieces[3]), Ids{4});
  EXPECT_EQ(line.ids(line.pieces[0]), Ids{1});
}

TEST(PieceKeeper, LeavesNoEntryEmpty) {
  OneLine line;
  PieceReaders::Reader& reader = line.memory.readers.join();
  line.keep(line.pieces[0], {1});
  line.keep(line.pieces[1], {2});
  std::thread turn;
  {
    PieceKeeper another(line.memory);
    reader.begin_turn();
    OneLine::keep(another, line.pieces[2], {3});
    EXPECT_EQ(line.find(line.pieces[2]), nullptr);
    turn = std::thread([&] { reader.end_turn(); });
  }
  EXPECT_EQ(line.ids(line.pieces[2]), Ids{3});
  turn.join();
}

TEST(PieceKeeper, KeepsManyIdsElsewhere) {
  OneLine line;
  line.keep("many", Ids(12, 5));
  const auto ref = line.memory.table.find_far(PieceKey::of("many"));
  ASSERT_TRUE(ref.has_value());
  const auto ids = line.memory.longer.get(*ref);
  EXPECT_EQ(Ids(ids.begin(), ids.end()), Ids(12, 5));
}

}  // namespace
}  // namespace megalith
