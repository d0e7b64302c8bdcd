#include "libcore/data/merge/merge.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/data/inspect/dataset_tool.h"
#include "libcore/io/files/file.h"
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
  EXPECT_NE(refusal(config).message.find("in/notes.txt: is not part of a dataset"), std::string::npos);
  fs::remove(dir / "in/notes.txt");
  write_file(dir / "in/b.json", "{}");
  EXPECT_NE(refusal(config).message.find("in/b.json: is not part of a dataset"), std::string::npos);
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
  EXPECT_FALSE(file_exists(dir / "out"));
}

TEST(Merge, OrdersByNumbersWhenAskedTo) {
  const TempDir dir;
  int32_t id = 0;
  // Python: sorted(..., key=natsort.natsort_key) of natsort 8, which orders numbers by value and all else by
  // code point. It considers p01 and p1 equal; here they are in the order of code points.
  for (const char* name :
       {"p", "p01", "p1", "p2", "p2a", "p2a9", "p2a10", "p10", "p99999999999999999999", "pz"})
    write_one(dir / "in/" + name, id++);
  write_one(dir / "in/P9", -1 + 100);
  merge_datasets({.inputs = {dir / "in"}, .output_prefix = dir / "all", .natural_sort = true});
  EXPECT_EQ(ids_of(dir / "all"), (std::vector<int64_t>{99, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Merge, OrdersByNumbersThroughFolders) {
  const TempDir dir;
  int32_t id = 0;
  for (const char* name : {"a1/x2", "a1/x10", "a9/x1", "a10/x1"}) write_one(dir / "in/" + name, id++);
  merge_datasets(
      {.inputs = {dir / "in"}, .output_prefix = dir / "all", .recursive = true, .natural_sort = true});
  EXPECT_EQ(ids_of(dir / "all"), (std::vector<int64_t>{0, 1, 2, 3}));
}

/// Adds documents `first` to first + n - 1 to all writers. Document i has i % 4 sequences of i % 7 tokens.
void write_many(int64_t n, const std::vector<IndexedDatasetWriter*>& writers, int64_t first) {
  std::vector<int32_t> ids, lengths;
  for (int64_t i = first; i < first + n; ++i) {
    lengths.assign(static_cast<size_t>(i % 4), static_cast<int32_t>(i % 7));
    ids.assign(static_cast<size_t>((i % 4) * (i % 7)), static_cast<int32_t>(i % 50257));
    for (IndexedDatasetWriter* writer : writers) writer->add_document(ids, lengths);
  }
}

TEST(Merge, EqualsOneWriterAtTheEdgesOfItsBlocks) {
  const TempDir dir;
  IndexedDatasetWriter whole(dir / "whole", IndexedDType::kU16), wide(dir / "wide", IndexedDType::kI32);
  int64_t documents = 0;
  std::vector<std::string> narrow_inputs, mixed_inputs;
  for (const int64_t n : {1, 0, 5461, 5462, 8191, 8192, 8193, 30001}) {
    const std::string prefix = concat(dir / "part", narrow_inputs.size());
    IndexedDatasetWriter part(prefix, IndexedDType::kU16), wide_part(prefix + "w", IndexedDType::kI32);
    write_many(n, {&whole, &wide, &part, &wide_part}, documents);
    part.finish();
    wide_part.finish();
    documents += n;
    mixed_inputs.push_back(narrow_inputs.size() % 3 == 1 ? prefix + "w" : prefix);
    narrow_inputs.push_back(prefix);
  }
  whole.finish();
  wide.finish();
  merge_datasets({.inputs = narrow_inputs, .output_prefix = dir / "joined"});
  EXPECT_TRUE(read_file(dir / "joined.idx") == read_file(dir / "whole.idx"));
  EXPECT_TRUE(read_file(dir / "joined.bin") == read_file(dir / "whole.bin"));
  merge_datasets({.inputs = mixed_inputs, .output_prefix = dir / "widened", .widen = true});
  EXPECT_TRUE(read_file(dir / "widened.idx") == read_file(dir / "wide.idx"));
  EXPECT_TRUE(read_file(dir / "widened.bin") == read_file(dir / "wide.bin"));
}

TEST(Merge, WidensToTheSmallestTypeThatHoldsAll) {
  using enum IndexedDType;
  struct Case {
    IndexedDType a, b, joined;
  };
  for (const Case& c :
       {Case{kU8, kU16, kU16}, Case{kU16, kI16, kI32}, Case{kI8, kU8, kI16}, Case{kU16, kI32, kI32},
        Case{kI32, kU16, kI32}, Case{kI64, kU16, kI64}, Case{kU16, kU16, kU16}}) {
    const TempDir dir;
    write_one(dir / "a", 100, c.a);
    write_one(dir / "b", 7, c.b);
    merge_datasets({.inputs = {dir / "a", dir / "b"}, .output_prefix = dir / "all", .widen = true});
    EXPECT_EQ(IndexedDataset(dir / "all").dtype(), c.joined) << name_of(c.a) << ' ' << name_of(c.b);
    EXPECT_EQ(ids_of(dir / "all"), (std::vector<int64_t>{100, 7}));
  }
}

TEST(Merge, DoesNotWidenFloatingPointNumbers) {
  const TempDir dir;
  write_one(dir / "a", 1);
  IndexedDatasetWriter(dir / "b", IndexedDType::kF32).finish();
  const Refusal r = refusal({.inputs = {dir / "a", dir / "b"}, .output_prefix = dir / "all", .widen = true});
  EXPECT_EQ(r.kind, ErrorKind::kData);
  EXPECT_NE(r.message.find("floating-point numbers are not token ids"), std::string::npos) << r.message;
}

/// Writes a dataset with a sidecar that holds its hashes.
void write_hashed(const std::string& prefix, int32_t id, IndexedDType dtype = IndexedDType::kU16) {
  IndexedDatasetWriter writer(prefix, dtype);
  writer.add_document(std::array<int32_t, 3>{id, id, id}, std::array<int32_t, 2>{1, 2});
  writer.finish();
  Sidecar sidecar{.tokenizer = "T", .vocab_size = 10, .max_token_id = id};
  writer.describe(sidecar);
  make_sidecar(prefix, sidecar)->commit();
}

void flip(const std::string& path, size_t byte) {
  std::string bytes = read_file(path);
  bytes[byte] = static_cast<char>(bytes[byte] ^ 4);
  write_file(path, bytes);
}

TEST(Merge, VerifiesContentWhenAskedTo) {
  const TempDir dir;
  write_hashed(dir / "in/a", 1);
  write_hashed(dir / "in/b", 2);
  write_hashed(dir / "in/c", 3, IndexedDType::kI32);
  const MergeConfig config{
      .inputs = {dir / "in"}, .output_prefix = dir / "out/all", .widen = true, .verify = true};
  merge_datasets(config);
  EXPECT_EQ(ids_of(dir / "out/all"), (std::vector<int64_t>{1, 1, 1, 2, 2, 2, 3, 3, 3}));
  EXPECT_EQ(verify_dataset(dir / "out/all"), Verified::kContent);
  for (const auto& [file, byte] : {std::pair<const char*, size_t>{"in/b.bin", 3}, {"in/c.bin", 3}}) {
    flip(dir / file, byte);
    const Refusal r = refusal(config);
    EXPECT_EQ(r.kind, ErrorKind::kData);
    EXPECT_NE(r.message.find(std::string(file) + ": its XXH64 is "), std::string::npos) << r.message;
    EXPECT_EQ(verify_dataset(dir / "out/all"), Verified::kContent);  // the earlier dataset still exists
    flip(dir / file, byte);
  }
  fs::remove(dir / "in/b.json");
  EXPECT_NE(refusal(config).message.find("in/b.json: there is no such sidecar, so --verify has nothing"),
            std::string::npos);
}

TEST(Merge, FindsASoundButOtherIndexWithVerify) {
  const TempDir dir;
  write_hashed(dir / "a", 1);
  std::string idx = read_file(dir / "a.idx");
  std::swap(idx[34], idx[38]);  // lengths 1, 2 become 2, 1
  idx[34 + 8 + 8] = 4;          // the second pointer is changed accordingly
  write_file(dir / "a.idx", idx);
  MergeConfig config{.inputs = {dir / "a"}, .output_prefix = dir / "all"};
  merge_datasets(config);
  config.verify = true;
  EXPECT_NE(refusal(config).message.find("a.idx: its XXH64 is "), std::string::npos);
}

TEST(Merge, CarriesHashesSoThatEarlierDamageIsStillFound) {
  const TempDir dir;
  for (const char* name : {"in/a", "in/b"}) write_hashed(dir / name, 5);
  flip(dir / "in/b.bin", 1);
  merge_datasets({.inputs = {dir / "in"}, .output_prefix = dir / "all"});
  merge_datasets({.inputs = {dir / "in/a", dir / "all"}, .output_prefix = dir / "again"});
  for (const char* name : {"all", "again"}) {
    try {
      verify_dataset(dir / name);
      ADD_FAILURE() << name << " passed";
    } catch (const Error& error) {
      const std::string place = name == std::string("all") ? "(bytes 6 to 12)" : "(bytes 12 to 18)";
      EXPECT_NE(std::string(error.what()).find(place), std::string::npos) << error.what();
    }
  }
}

TEST(Merge, DoesNotUseASidecarOfAnotherDataset) {
  const TempDir dir;
  write_hashed(dir / "a", 5);
  auto sidecar = *read_sidecar(dir / "a");
  sidecar.documents = 7;
  make_sidecar(dir / "a", sidecar)->commit();
  const MergeConfig config{.inputs = {dir / "a"}, .output_prefix = dir / "all"};
  merge_datasets(config);
  EXPECT_FALSE(read_sidecar(dir / "all").has_value());
  sidecar.documents = 1;
  sidecar.bin_parts[0].bytes = 8;
  make_sidecar(dir / "a", sidecar)->commit();
  merge_datasets(config);
  EXPECT_FALSE(read_sidecar(dir / "all").has_value());
}

/// Cuts an .idx at each byte and flips each of its bits. The merge must refuse it, name the file and leave no
/// output, unless the damaged .idx is again a valid one.
TEST(Merge, RefusesAnIndexTruncatedOrFlippedAnywhere) {
  const TempDir dir;
  write_hashed(dir / "a", 5);
  const std::string whole = read_file(dir / "a.idx");
  set_log_sink([](const std::string&) {});
  const auto outcome = [&](const std::string& bytes) {
    std::ofstream(dir / "a.idx", std::ios::binary | std::ios::trunc) << bytes;
    const Refusal r = refusal({.inputs = {dir / "a"}, .output_prefix = dir / "out/all"});
    const bool merged = r.message == "merged";
    EXPECT_TRUE(merged || (r.kind == ErrorKind::kData && r.message.find("/a.") != std::string::npos))
        << r.message;
    EXPECT_EQ(file_exists(dir / "out/all.idx"), merged);
    if (merged) {
      EXPECT_EQ(IndexedDataset(dir / "out/all").tokens(), 3);
    }
    fs::remove_all(dir / "out");
    return merged;
  };
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(outcome(whole.substr(0, size))) << size;
  int merged = 0;
  for (size_t i = 0; i < whole.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      merged += outcome(flipped);
    }
  // No single flip turns this index into another valid one: the code of int16, the only other two-byte type,
  // differs from that of uint16 in several bits, and the last boundary must be the number of sequences.
  EXPECT_EQ(merged, 0);
  set_log_sink(nullptr);
}

TEST(Merge, CopiesThroughTheNextWayWhereOneCannot) {
  const TempDir dir;
  write_hashed(dir / "in/a", 1);
  write_hashed(dir / "in/b", 2);
  // With both errors, a system call says that it does not support these files; the merge must then copy
  // another way.
  for (const int error : {EXDEV, EINVAL})
    for (const std::vector<std::string>& failing :
         {std::vector<std::string>{"copy_file_range"}, {"copy_file_range", "sendfile"}}) {
      fs::remove_all(dir / "out");
      const Fault fault{.mode = Fault::kFail, .error = error, .every = failing};
      const FaultRun run = test::run_with_fault(fault, [&] {
        set_log_sink([](const std::string&) {});
        merge_datasets({.inputs = {dir / "in"}, .output_prefix = dir / "out/all"});
      });
      EXPECT_EQ(run.exit_code, 0);
      EXPECT_EQ(run.call, failing.back());
      EXPECT_EQ(ids_of(dir / "out/all"), (std::vector<int64_t>{1, 1, 1, 2, 2, 2}));
      EXPECT_EQ(verify_dataset(dir / "out/all"), Verified::kContent);
    }
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

/// Merges two datasets to a prefix that may name an old dataset, with a fault at every system call in turn.
/// After each run, an .idx must belong to the complete old or the complete new dataset.
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
      if (!run.fired) continue;  // the fault is a short write, and this call does not write
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
  bool has_new_ = false;  // whether the last run has left the new dataset
};

TEST_F(MergeFault, AKillLeavesACompleteDatasetOrNone) {
  for (const bool replaces : {false, true})
    at_every_call({.mode = Fault::kKill}, replaces, [](const FaultRun& run) { EXPECT_TRUE(run.killed); });
}

TEST_F(MergeFault, AFullOrBrokenDiskExits74) {
  for (const bool replaces : {false, true})
    for (const int error : {ENOSPC, EIO})
      at_every_call({.mode = Fault::kFail, .error = error}, replaces, [&](const FaultRun& run) {
        // The run may succeed if the failed call only closes an input, or if something else is done in its
        // place (a named file is created if a nameless one cannot be).
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
  make_sidecar(dir / "in/a", sidecar)->commit();
  merge_datasets(config);
  EXPECT_FALSE(read_sidecar(dir / "all").has_value());  // one source has no sidecar
  sidecar.max_token_id = 9;
  make_sidecar(dir / "in/b", sidecar)->commit();
  merge_datasets(config);
  const auto joined = read_sidecar(dir / "all");
  ASSERT_TRUE(joined.has_value());
  EXPECT_EQ(joined->max_token_id, 9);
  EXPECT_EQ(joined->tokens, 2);
  EXPECT_EQ(joined->tokenizer_hash, "h");
  sidecar.tokenizer =
      // One tokenizer may have two names: for example, T for its tokenizer.json and U for its vocab.json and
      // merges.txt.
      "U";
  make_sidecar(dir / "in/b", sidecar)->commit();
  merge_datasets(config);
  EXPECT_EQ(read_sidecar(dir / "all")->tokenizer_hash, "h");
  sidecar.tokenizer = "T";
  sidecar.tokenizer_hash = "other";
  make_sidecar(dir / "in/b", sidecar)->commit();
  EXPECT_NE(refusal(config).message.find("preprocess both with the same tokenizer"), std::string::npos);
}

}  // namespace
}  // namespace megalith
