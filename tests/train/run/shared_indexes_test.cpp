#include "libcore/train/run/shared_indexes.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "libcore/base/error.h"
#include "libcore/io/cache/build_cache.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

namespace megalith {
namespace {
namespace fs = std::filesystem;

const std::vector<RankPlace> kPlaces = {
    {.machine = "a"}, {.machine = "b"}, {.machine = "b"}, {.machine = "a"}, {.machine = "c"}};

TEST(SharedIndexes, AreMadeByTheFirstRankOfEachMachine) {
  const test::TempDir temporary;
  const test::Variable where("TMPDIR", temporary.path().string());
  std::vector<std::string> folders(kPlaces.size());
  std::vector<int> makes(kPlaces.size()), makers(kPlaces.size());
  run_thread_ranks(static_cast<int>(kPlaces.size()), {}, [&](Communicator& world) {
    const SharedIndexes indexes(world, kPlaces, "");
    const auto rank = static_cast<size_t>(world.rank());
    folders[rank] = indexes.folder();
    makes[rank] = indexes.makes();
    makers[rank] = indexes.maker();
    // Rank 4 is alone on its machine and needs no folder.
    EXPECT_EQ(fs::is_directory(indexes.folder()), rank != 4) << rank;
    world.exchange({});  // keeps all folders until all ranks have looked
  });
  EXPECT_EQ(makes, (std::vector<int>{1, 1, 0, 0, 1}));
  EXPECT_EQ(makers, (std::vector<int>{0, 1, 1, 0, 4}));
  EXPECT_EQ(folders[0], folders[3]);
  EXPECT_EQ(folders[1], folders[2]);
  EXPECT_NE(folders[0], folders[1]);
  EXPECT_EQ(folders[4], "");
  EXPECT_TRUE(fs::is_empty(temporary.path()));
}

// A group may write in what is made with this umask, which is usual where each user has a group.
TEST(SharedIndexes, AreKeptWhateverTheUmaskIs) {
  const test::TempDir temporary;
  const test::Variable where("TMPDIR", temporary.path().string());
  const std::vector<RankPlace> places = {{.machine = "a"}, {.machine = "a"}};
  const mode_t before = ::umask(0002);
  std::vector<Keeping> keeping(places.size());
  run_thread_ranks(2, {}, [&](Communicator& world) {
    const SharedIndexes indexes(world, places, "");
    keeping[static_cast<size_t>(world.rank())] = keeping_in(indexes.folder());
    world.exchange({});
  });
  ::umask(before);
  EXPECT_EQ(keeping, std::vector<Keeping>(2, keeping_in(temporary.path())));
  EXPECT_NE(keeping[0], Keeping::kNot);
}

TEST(SharedIndexes, LieInTheCacheThatIsGiven) {
  const test::TempDir cache;
  run_thread_ranks(static_cast<int>(kPlaces.size()), {}, [&](Communicator& world) {
    EXPECT_EQ(SharedIndexes(world, kPlaces, cache.path()).folder(), cache.path());
  });
  EXPECT_TRUE(fs::is_directory(cache.path()));
}

// The rank that created the folder is killed: its object is not destroyed during the test.
TEST(SharedIndexes, LeaveNoFolderWhenTheirMakerIsKilled) {
  const test::TempDir temporary;
  const test::Variable where("TMPDIR", temporary.path().string());
  const std::vector<RankPlace> places = {{.machine = "a"}, {.machine = "a"}};
  const SharedIndexes* killed = nullptr;
  std::string folder;
  run_thread_ranks(2, {}, [&](Communicator& world) {
    if (world.rank() == 0) {
      killed = new SharedIndexes(world, places, "");
      world.exchange({});
    } else {
      const SharedIndexes indexes(world, places, "");
      folder = indexes.folder();
      EXPECT_TRUE(fs::is_directory(folder));
      world.exchange({});
    }
  });
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_TRUE(fs::is_empty(temporary.path()));
  delete killed;
}

TEST(SharedIndexes, NameATemporaryFolderThatIsNone) {
  const test::Variable where("TMPDIR", "/no/such/folder");
  const std::vector<RankPlace> places = {{.machine = "a"}, {.machine = "a"}};
  try {
    run_thread_ranks(2, {}, [&](Communicator& world) { const SharedIndexes indexes(world, places, ""); });
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("TMPDIR=\"/no/such/folder\" in the environment"),
              std::string::npos)
        << error.what();
  }
}

TEST(SharedIndexes, LeaveNoFolderWhenARankFails) {
  const test::TempDir temporary;
  const test::Variable where("TMPDIR", temporary.path().string());
  const std::vector<RankPlace> places = {{.machine = "a"}, {.machine = "a"}};
  EXPECT_THROW(run_thread_ranks(2, {},
                                [&](Communicator& world) {
                                  if (world.rank() == 1) fail(ErrorKind::kIo, "no data here");
                                  const SharedIndexes indexes(world, places, "");
                                }),
               Error);
  EXPECT_TRUE(fs::is_empty(temporary.path()));
}

}  // namespace
}  // namespace megalith
