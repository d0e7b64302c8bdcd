#include <algorithm>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

std::string golden(const std::string& name) {
  return test_data("data/goldens/" + name);
}

CommandResult data(const std::string& arguments) {
  return run_command(app("data") + " " + arguments);
}

TEST(DataApp, MakesADatasetOfNanoGptsIds) {
  const TempDir dir;
  write_file(dir / "train.bin", std::string("\1\0\2\0\3\0", 6));
  const CommandResult made = data("from-nanogpt --eod 2 " + (dir / "train.bin"));
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.out, (dir / "train_document") + ": 3 tokens in 2 documents\n");
  const CommandResult printed = data("cat " + (dir / "train_document"));
  EXPECT_NE(printed.out.find("[1, 2]"), std::string::npos) << printed.out;
}

TEST(DataApp, InspectsPrintsAndCounts) {
  const CommandResult inspect = data("inspect " + golden("mixed"));
  EXPECT_EQ(inspect.code, 0) << inspect.err;
  EXPECT_NE(inspect.out.find("  documents  90\n"), std::string::npos) << inspect.out;
  EXPECT_NE(inspect.out.find("tokens a document: min "), std::string::npos) << inspect.out;
  const CommandResult stats = data("stats --json " + golden("long") + " " + golden("mixed"));
  EXPECT_EQ(stats.code, 0) << stats.err;
  EXPECT_NE(stats.out.find("\"tokens\": 4533"), std::string::npos) << stats.out;
  EXPECT_NE(stats.out.find("\"most_frequent\": ["), std::string::npos) << stats.out;
  EXPECT_EQ(std::count(stats.out.begin(), stats.out.end(), '\n'), 2) << "one line a dataset";
  const CommandResult cat = data("cat " + golden("wide") + " --from 39 --count 5");
  EXPECT_EQ(cat.code, 0) << cat.err;
  EXPECT_EQ(cat.out.find("{\"document\": 39"), 0u) << cat.out;
}

TEST(DataApp, VerifiesAllAndExits65WhenOneIsDamaged) {
  const TempDir dir;
  for (const char* name : {"wide.bin", "wide.idx"}) std::filesystem::copy_file(golden(name), dir / name);
  std::filesystem::resize_file(dir / "wide.bin", 9000);
  const CommandResult result = data("verify " + (dir / "wide") + " " + golden("mixed"));
  EXPECT_EQ(result.code, 65);
  EXPECT_NE(result.err.find("wide.bin: is 9000 bytes, but sequence"), std::string::npos) << result.err;
  EXPECT_EQ(result.out, golden("mixed") + ": structure sound; no hashes to compare content with\n");
}

TEST(DataApp, RefusesOptionsThatItWouldNotObey) {
  const TempDir dir;
  write_file(dir / "a.jsonl", "{\"text\": \"1\"}\n");
  const std::string plan = "shards --shards 2 --plan " + (dir / "a.jsonl"),
                    missing = "shards --shards 2 --missing " + (dir / "out");
  EXPECT_EQ(data(plan + " --json --shard-by files --text file").code, 0);
  EXPECT_EQ(data(missing + " --format lines").out, "0\n1\n");
  for (const std::string& refused :
       {plan + " --format lines", missing + " --json", missing + " --shard-by files",
        missing + " --text file", "inspect --format lines " + golden("mixed"),
        "inspect --text file " + golden("mixed"), "inspect --shard-by files " + golden("mixed")}) {
    const CommandResult result = data(refused);
    EXPECT_EQ(result.code, 64) << refused;
    EXPECT_NE(result.err.find(" belong"), std::string::npos) << result.err;
  }
}

TEST(DataApp, ExitsByTheKindOfMistake) {
  EXPECT_EQ(data("").code, 64);
  EXPECT_EQ(data("burn " + golden("mixed")).code, 64);
  EXPECT_EQ(data("inspect /nowhere/at/all").code, 66);
}

}  // namespace
}  // namespace megalith::test
