#include <filesystem>

#include <gtest/gtest.h>

#include "libcore/data/preprocess/preprocess_stages.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::test_data;

// tests/data/goldens/stopped.resume.json was written by megalith-preprocess of commit 489c7940, which had
// other code for this file, when it received SIGTERM. Its options: --json-keys text title --append-eod
// --on-error skip --rejects rej --dedup exact --resume --workers 1 --min-chars 1, with a NullTokenizer of 100
// ids.
TEST(PreprocessJournal, KeepsTheBytesOfAnEarlierVersion) {
  const test::TempDir dir;
  const std::string golden = test_data("data/goldens/stopped.resume.json");
  std::filesystem::copy_file(golden, dir / "out.resume.json");
  const PreprocessJournal journal(dir / "out", Json::load(golden)["run"]);
  ASSERT_TRUE(journal.state().has_value());
  const PreprocessState& state = *journal.state();
  EXPECT_EQ(state.source.reader.place.line, 36865U);
  EXPECT_EQ(state.summary.documents, 36753);
  EXPECT_EQ(state.summary.skipped(), 37 + 37);
  EXPECT_EQ(state.rejects.bytes, 1221U);
  ASSERT_EQ(state.keys.size(), 2U);
  EXPECT_EQ(state.keys[1].first, "title");
  journal.write(state);
  EXPECT_EQ(read_file(dir / "out.resume.json"), read_file(golden));
}

}  // namespace
}  // namespace megalith
