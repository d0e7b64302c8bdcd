#include "libcore/data/merge.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/log.h"
#include "libcore/data/indexed_dataset.h"
#include "libcore/data/sidecar.h"
#include "tests/support/faults.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::Fault;
using test::FaultRun;
using test::TempDir;
using test::test_data;

void write_one(const std::string& prefix, int32_t id, IndexedDType dtype = IndexedDType::kU16) {
  IndexedDatasetWriter writer(prefix, dtype);
  writer.add_document(std::array<int32_t, 1>{id}, std::array<int32_t, 1>{1});
  writer.finish();
}

std::vector<int64_t> ids_of(const std::string& prefix) {
  const IndexedDataset data(prefix);
  std::vector<int64_t> ids(static_cast<size_t>(data.tokens()));
  data.all_tokens().copy_to(ids.data());
  return ids;
}

struct Refusal {
  ErrorKind kind;
  std::string message;
};
Refusal refusal(const MergeConfig& config) {
  try {
    merge_datasets(config);
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {ErrorKind::kInternal, "merged"};
}

TEST(Merge, WritesMegatronsBytes) {
  const TempDir dir;
  for (const char* name : {"long", "mixed"})
    for (const char* ending : {".bin", ".idx"}) {
      fs::create_directory(dir / "in");
      fs::copy_file(test_data(std::string("data/goldens/") + name + ending), dir / "in/" + name + ending);
    }
  const auto summary = merge_datasets({.inputs = {dir / "in"}, .output_prefix = dir / "out/merged"});
  EXPECT_EQ(summary.datasets, 2);
  EXPECT_EQ(summary.documents, 111);
  EXPECT_EQ(read_file(dir / "out/merged.idx"), read_file(test_data("data/goldens/merged.idx")));
  EXPECT_EQ(read_file(dir / "out/merged.bin"), read_file(test_data("data/goldens/merged.bin")));
}

TEST(Merge, OrdersPrefixesByCodePoint) {
  const TempDir dir;
  int32_t id = 0;
  // Python: sorted(["p10", "p2", "pé", "pz", "P9", "p", "p😀"]) == ['P9', 'p', 'p10', 'p2', 'pz', 'pé', 'p😀']
  for (const char* name : {"p10", "p2", "pé", "pz", "P9", "p", "p😀"}) write_one(dir / "in/" + name, id++);
  merge_datasets({.inputs = {dir / "in"}, .output_prefix = dir / "all"});
  EXPECT_EQ(ids_of(dir / "all"), (std::vector<int64_t>{4, 5, 0, 1, 3, 2, 6}));
}

TEST(Merge, TakesFoldersBelowWhenAskedTo) {
  const TempDir dir;
  write_one(dir / "in/AB/wiki_00", 2);
  write_one(dir / "in/AA/wiki_01", 1);
  write_one(dir / "in/AA/wiki_00", 0);
  EXPECT_EQ(refusal({.inputs = {dir / "in"}, .output_prefix = dir / "all"}).kind, ErrorKind::kNoInput);
  merge_datasets({.inputs = {dir / "in"}, .output_prefix = dir / "all", .recursive = true});
  EXPECT_EQ(ids_of(dir / "all"), (std::vector<int64_t>{0, 1, 2}));
}

TEST(Merge, TakesPrefixesAsGiven) {
  const TempDir dir;
  write_one(dir / "b", 1);
  write_one(dir / "a", 2);
  merge_datasets({.inputs = {dir / "b", dir / "a", dir / "b"}, .output_prefix = dir / "all"});
  EXPECT_EQ(ids_of(dir / "all"), (std::vector<int64_t>{1, 2, 1}));
}

TEST(Merge, RefusesFilesThatAreNoDataset) {
  const TempDir dir;
  write_one(dir / "in/a", 1);
  write_file(dir / "in/a.json", "{}");
  const MergeConfig config{.inputs = {dir / "in"}, .output_prefix = dir / "all"};
  write_file(dir / "in/notes.txt", "x");
  EXPECT_NE(refusal(config).message.find("in/notes.txt: is no part of a dataset"), std::string::npos);
  fs::remove(dir / "in/notes.txt");
  write_file(dir / "in/b.json", "{}");
  EXPECT_NE(refusal(config).message.find("in/b.json: is no part of a dataset"), std::string::npos);
  fs::remove(dir / "in/b.json");
  write_file(dir / "in/b.bin", "");
  EXPECT_NE(refusal(config).message.find("in/b.bin: there is no "), std::string::npos);
  EXPECT_EQ(refusal(config).kind, ErrorKind::kData);
  EXPECT_FALSE(file_exists(dir / "all.bin"));
  fs::remove(dir / "in/b.bin");
  merge_datasets(config);
}

TEST(Merge, RefusesAnotherTokenTypeAndLeavesNothing) {
  const TempDir dir;
  write_one(dir / "in/a", 1);
  write_one(dir / "in/b", 1, IndexedDType::kI32);
  const Refusal r = refusal({.inputs = {dir / "in"}, .output_prefix = dir / "out/all"});
  EXPECT_EQ(r.kind, ErrorKind::kData);
  EXPECT_NE(r.message.find("in/b: tokens are int32, those of the datasets before it uint16"),
            std::string::npos);
  EXPECT_TRUE(fs::is_empty(dir / "out"));
}

TEST(Merge, RefusesADamagedSourceAndLeavesNothing) {
  const TempDir dir;
  write_one(dir / "in/a", 1);
  write_one(dir / "in/b", 1);
  fs::resize_file(dir / "in/b.bin", 1);
  const Refusal r = refusal({.inputs = {dir / "in"}, .output_prefix = dir / "out/all"});
  EXPECT_EQ(r.kind, ErrorKind::kData);
  EXPECT_NE(r.message.find("in/b.bin: is 1 bytes"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(dir / "out"));
}

TEST(Merge, RefusesToOverwriteAnInput) {
  const TempDir dir;
  write_one(dir / "in/a", 1);
  EXPECT_EQ(refusal({.inputs = {dir / "in"}, .output_prefix = dir / "in/../in/a"}).kind, ErrorKind::kUsage);
  EXPECT_EQ(ids_of(dir / "in/a"), (std::vector<int64_t>{1}));
}

/// Merges two datasets over a third one (or nothing) with the fault at every call in turn, and holds each
/// outcome against what is promised: an .idx is that of the complete old or the complete new dataset.
class MergeFault : public testing::Test {
 protected:
  MergeFault() {
    write_one(dir_ / "in/a", 1);
    write_one(dir_ / "in/b", 2);
    write_one(dir_ / "old/all", 3);
  }
  void at_every_call(Fault fault, bool replaces, const std::function<void(const FaultRun&)>& check) {
    const std::vector<int64_t> old_ids = {3}, new_ids = {1, 2};
    int fired = 0;
    for (fault.at = 1;; ++fault.at) {
      fs::remove_all(dir_ / "out");
      if (replaces) fs::copy(dir_ / "old", dir_ / "out");
      const FaultRun run = run_with_fault(fault, [&] {
        set_log_sink([](const std::string&) {});
        merge_datasets({.inputs = {dir_ / "in"}, .output_prefix = dir_ / "out/all"});
      });
      if (!run.fired && fault.at > run.calls) break;
      if (!run.fired) continue;  // a short write can only happen to a write
      ++fired;
      SCOPED_TRACE(concat("call ", fault.at, ", ", run.call, replaces ? ", over an old dataset" : ""));
      if (has_new_ = false; file_exists(dir_ / "out/all.idx")) {
        const std::vector<int64_t> ids = ids_of(dir_ / "out/all");
        has_new_ = ids == new_ids;
        EXPECT_TRUE(has_new_ || (replaces && ids == old_ids));
      }
      check(run);
      if (HasFailure()) return;
    }
    EXPECT_GT(fired, fault.mode == Fault::kShort ? 2 : 10);
  }
  TempDir dir_;
  bool has_new_ = false;  // the outcome is the new dataset
};

TEST_F(MergeFault, AKillLeavesACompleteDatasetOrNone) {
  for (const bool replaces : {false, true})
    at_every_call({.mode = Fault::kKill}, replaces, [](const FaultRun& run) { EXPECT_TRUE(run.killed); });
}

TEST_F(MergeFault, AFullOrBrokenDiskExits74) {
  for (const bool replaces : {false, true})
    for (const int error : {ENOSPC, EIO})
      at_every_call({.mode = Fault::kFail, .error = error}, replaces, [&](const FaultRun& run) {
        // Where a call has a substitute (a named file for a nameless one), or is the closing of an input, all
        // is well.
        EXPECT_TRUE(run.exit_code == exit_code(ErrorKind::kIo) || (run.exit_code == 0 && has_new_))
            << run.exit_code;
      });
}

TEST_F(MergeFault, AShortWriteIsContinued) {
  at_every_call({.mode = Fault::kShort}, false, [&](const FaultRun& run) {
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_TRUE(has_new_);
  });
}

TEST(Merge, JoinsSidecarsOfOneTokenizer) {
  const TempDir dir;
  write_one(dir / "in/a", 7);
  write_one(dir / "in/b", 9);
  const MergeConfig config{.inputs = {dir / "in"}, .output_prefix = dir / "all"};
  Sidecar sidecar{
      .tokenizer = "T", .tokenizer_hash = "h", .vocab_size = 10, .documents = 1, .sequences = 1, .tokens = 1};
  sidecar.max_token_id = 7;
  write_sidecar(dir / "in/a", sidecar);
  merge_datasets(config);
  EXPECT_FALSE(read_sidecar(dir / "all").has_value());  // one source has none
  sidecar.max_token_id = 9;
  write_sidecar(dir / "in/b", sidecar);
  merge_datasets(config);
  const auto joined = read_sidecar(dir / "all");
  ASSERT_TRUE(joined.has_value());
  EXPECT_EQ(joined->max_token_id, 9);
  EXPECT_EQ(joined->tokens, 2);
  EXPECT_EQ(joined->tokenizer_hash, "h");
  sidecar.tokenizer_hash = "other";
  write_sidecar(dir / "in/b", sidecar);
  EXPECT_NE(refusal(config).message.find("preprocess both with the same tokenizer"), std::string::npos);
}

}  // namespace
}  // namespace megalith
