#include "libcore/data/cache/cache_command.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/hash/sha256.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using Words = std::vector<std::string>;

/// A job of the goldens, and the files that Megatron wrote for it.
struct Case {
  std::string version, text;
  Words words;
  std::map<std::string, std::string> files;  // names and SHA-256
};

/// The words of a command line in which quotes are double, as the goldens have them.
Words words_of(const std::string& line) {
  Words words(1);
  bool quoted = false, any = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (!words.back().empty() || any) words.emplace_back();
      any = false;
    } else {
      words.back() += c;
    }
  }
  return words;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  std::ifstream file(test::test_data("data/cache/goldens/caches.txt"));
  for (std::string line; std::getline(file, line);) {
    const Words parts = split(line, ' ');
    if (parts[0] == "case") {
      const std::string text = line.substr(parts[0].size() + parts[1].size() + 2);
      all.push_back({parts[1], text, words_of(text), {}});
    } else {
      all.back().files[parts[1]] = parts[2];
    }
  }
  return all;
}

/// Works in the folder of the datasets, whose paths are part of the names, and back in the old one at the
/// end.
class InData {
 public:
  InData() : before_(fs::current_path()) { fs::current_path(test::test_data("data/goldens")); }
  ~InData() { fs::current_path(before_); }
  InData(const InData&) = delete;
  InData& operator=(const InData&) = delete;

 private:
  fs::path before_;
};

std::map<std::string, std::string> digests(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename()] = sha256_hex(read_file(entry.path()));
  return files;
}

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const Words kJob = {"--data-path",         "mixed", "--split",      "1,0,0", "--seq-length",    "16",
                    "--train-iters",       "4",     "--eval-iters", "0",     "--eval-interval", "2",
                    "--global-batch-size", "8"};
const Words kNull = {"--tokenizer-type", "NullTokenizer", "--vocab-size", "600"};

std::string refusal(const Words& words) {
  const InData in;
  try {
    std::ostringstream out;
    run_cache_command(words, out);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

bool has_part(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CacheCommand, WritesTheFilesThatMegatronWrites) {
  const InData in;
  int done = 0;
  for (const Case& one : cases()) {
    const TempDir dir;
    std::ostringstream out;
    run_cache_command(joined(one.words, {"--megatron-core", one.version, "--data-cache-path", dir / "cache",
                                         "--threads", done % 2 ? "1" : "3"}),
                      out);
    EXPECT_EQ(digests(dir / "cache"), one.files) << one.version << ": " << one.text;
    ++done;
  }
  EXPECT_GE(done, 43);
}

TEST(CacheCommand, LeavesOutWhatChangesNoCache) {
  const InData in;
  const TempDir dir;
  std::ostringstream out;
  const Words others = {"--bf16", "--lr",    "1e-4",  "--num-layers",
                        "2",      "--split", "1,0,0", "--use-flash-attn"};
  run_cache_command(joined(joined(kJob, kNull), {"--data-cache-path", dir / "a"}), out);
  run_cache_command(joined(joined(joined(others, kJob), kNull), {"--data-cache-path", dir / "b"}), out);
  EXPECT_EQ(digests(dir / "a"), digests(dir / "b"));
}

TEST(CacheCommand, TakesTheTokenizerFromADescription) {
  const InData in;
  const TempDir dir;
  std::ostringstream out;
  run_cache_command(joined(joined(kJob, kNull), {"--data-cache-path", dir / "a", "--megatron-core", "head"}),
                    out);
  std::string description;
  for (const auto& [name, digest] : digests(dir / "a"))
    if (name.ends_with("description.txt")) description = dir / "a/" + name;
  run_cache_command(joined(kJob, {"--data-cache-path", dir / "b", "--like", description}), out);
  EXPECT_EQ(digests(dir / "a"), digests(dir / "b"));
  write_file(dir / "other", "{\"class\": \"GPTDataset\"}");
  EXPECT_PRED2(has_part, refusal(joined(kJob, {"--like", dir / "other"})), "no member \"tokenizer\"");
}

TEST(CacheCommand, WritesBesideADatasetWithoutAFolder) {
  const TempDir dir;
  for (const char* end : {".bin", ".idx"})
    fs::copy_file(test::test_data("data/goldens/mixed") + std::string(end), dir / "d" + std::string(end));
  Words job = kJob;
  job[1] = dir / "d";
  std::ostringstream out;
  run_cache_command(joined(job, kNull), out);
  EXPECT_EQ(digests(dir / "d/cache/GPTDataset_indices").size(), 4u);
  // mixed.idx has 1,437 tokens: (1437 - 1) / 16 pieces
  EXPECT_PRED2(has_part, out.str(), "indexes of 1 dataset and 0 blends, 89 samples");
}

TEST(CacheCommand, ReadsTheDatasetsFromAFile) {
  const InData in;
  const TempDir dir;
  std::ostringstream out;
  Words job = kJob;
  write_file(dir / "paths", "0.25\tmixed\n0.75 long\n");
  job[0] = "--data-args-path";
  job[1] = dir / "paths";
  run_cache_command(joined(joined(job, kNull), {"--data-cache-path", dir / "a"}), out);
  job.erase(job.begin(), job.begin() + 2);
  run_cache_command(joined(joined(job, kNull),
                           {"--data-path", "0.25", "mixed", "0.75", "long", "--data-cache-path", dir / "b"}),
                    out);
  EXPECT_EQ(digests(dir / "a"), digests(dir / "b"));
}

TEST(CacheCommand, ReadsTheDatasetsOfEachSplitFromAFile) {
  const InData in;
  const TempDir dir;
  std::ostringstream out;
  Words job(kJob.begin() + 4, kJob.end());
  job = joined(job, kNull);
  write_file(dir / "paths.json", R"({"train": "2 mixed 3 long", "valid": ["wide"], "test": null})");
  run_cache_command(
      joined(job, {"--per-split-data-args-path", dir / "paths.json", "--data-cache-path", dir / "a"}), out);
  run_cache_command(joined(job, {"--train-data-path", "2", "mixed", "3", "long", "--valid-data-path", "wide",
                                 "--data-cache-path", dir / "b"}),
                    out);
  EXPECT_EQ(digests(dir / "a").size(), 15u);  // 4 of each of 3 datasets, and 3 of the blend
  EXPECT_EQ(digests(dir / "a"), digests(dir / "b"));
}

// Without --data-cache-path, the first run makes a folder with the name of each dataset's prefix.
TEST(CacheCommand, MayBeRepeatedInTheFoldersOfTheDatasets) {
  const TempDir dir;
  for (const char* end : {".bin", ".idx"})
    fs::copy_file(test::test_data(concat("data/goldens/mixed", end)), dir / concat("a", end));
  const Words job = joined(joined(Words(kJob.begin() + 4, kJob.end()), kNull),
                           {"--train-data-path", dir / "a", "--valid-data-path", dir / "a", dir / "a",
                            "--test-data-path", dir / "a", "--fim-data"});
  std::ostringstream out;
  run_cache_command(job, out);
  const auto first = digests(dir / "a/cache/GPTFIMDataset_indices");
  EXPECT_EQ(first.size(), 12u);  // 4 of each split
  run_cache_command(job, out);
  EXPECT_EQ(digests(dir / "a/cache/GPTFIMDataset_indices"), first);
}

TEST(CacheCommand, RefusesTwoNamesOfTheDatasets) {
  const TempDir dir;
  const Words all = joined(kJob, kNull), own(all.begin() + 4, all.end());
  write_file(dir / "paths", "mixed");
  write_file(dir / "paths.json", R"({"train": "mixed"})");
  EXPECT_PRED2(has_part, refusal(joined(all, {"--data-args-path", dir / "paths"})),
               "--data-args-path and --data-path contradict each other");
  EXPECT_PRED2(has_part, refusal(joined(all, {"--train-data-path", "long"})),
               "--data-path, --train-data-path (with --valid-data-path and --test-data-path)");
  EXPECT_PRED2(
      has_part,
      refusal(joined(own, {"--train-data-path", "long", "--per-split-data-args-path", dir / "paths.json"})),
      "--per-split-data-args-path and --train-data-path");
  EXPECT_PRED2(has_part, refusal(joined(own, {"--data-args-path", dir / "paths"})),
               "--split is missing; Megatron has a default of it beside --data-path only");
  EXPECT_PRED2(has_part, refusal(own), "--data-path is missing (or --train-data-path");
}

TEST(CacheCommand, RefusesWhatMegatronDoesNotReadInAPath) {
  Words all = joined(kJob, kNull);
  all[1] = "mix*d";
  EXPECT_PRED2(has_part, refusal(all), "\"mixed\" was found by a pattern");
  const Words rest(all.begin() + 2, all.end());
  EXPECT_PRED2(has_part, refusal(joined({"--data-path", "mixed", "tokens=1e3", "long", "epochs=1"}, rest)),
               "give the job and this command the weights that they mean: 1000 mixed ");
}

TEST(CacheCommand, RefusesLengthsThatMegatronRefuses) {
  const Words all = joined(kJob, kNull);
  Words by_samples = all;
  by_samples[6] = "--train-samples";
  by_samples[7] = "100";
  EXPECT_PRED2(has_part, refusal(joined(all, {"--train-samples", "100"})),
               "--train-iters 4 and --train-samples 100 contradict each other");
  EXPECT_PRED2(has_part, refusal(joined(all, {"--rampup-batch-size", "4", "4", "9"})),
               "--rampup-batch-size needs --train-samples");
  EXPECT_PRED2(has_part, refusal(joined(by_samples, {"--rampup-batch-size", "4", "4"})), "three numbers");
  EXPECT_PRED2(has_part, refusal(joined(by_samples, {"--rampup-batch-size", "3", "4", "9"})),
               "is not reached from 3 in steps of 4");
  EXPECT_PRED2(has_part, refusal(joined(by_samples, {"--step-batch-size-schedule", "0:8"})),
               "--step-batch-size-schedule and --global-batch-size 8 contradict each other");
  const Words head = {"--megatron-core", "head", "--step-batch-size-schedule", "0:8"};
  const Words schedule = joined(Words(by_samples.begin(), by_samples.begin() + 12), joined(kNull, head));
  EXPECT_PRED2(has_part, refusal(schedule), "--eval-global-batch-size is missing");
  for (const char* name : {"--eval-global-batch-size", "--start-eval-at-iter"})
    EXPECT_PRED2(has_part, refusal(joined(all, {name, "2"})),
                 std::string(name) + " is no option of 0.16.1; give --megatron-core head");
}

// Head's arguments have it, but no code reads it: the job below is one of 4 steps of 8 samples.
TEST(CacheCommand, IgnoresARampWhereMegatronDoes) {
  const InData in;
  const TempDir dir;
  std::ostringstream out;
  const Words all = joined(joined(kJob, kNull), {"--megatron-core", "head"});
  run_cache_command(joined(all, {"--data-cache-path", dir / "a"}), out);
  run_cache_command(joined(all, {"--rampup-batch-size", "3", "4", "9", "--data-cache-path", dir / "b"}), out);
  EXPECT_EQ(digests(dir / "a").size(), 4u);
  EXPECT_EQ(digests(dir / "a"), digests(dir / "b"));
}

// Megatron's rule is re.findall(r"[.0-9]+", split); the text itself is a part of the names.
TEST(CacheCommand, TakesASplitWithAnySeparators) {
  const InData in;
  const TempDir dir;
  std::ostringstream out;
  Words all = joined(joined(kJob, kNull), {"--data-cache-path", dir / "a"});
  all[3] = "[8/1/1]";
  run_cache_command(all, out);
  EXPECT_EQ(digests(dir / "a").size(), 12u);  // 4 of each split
  all[3] = "8/1/1/1";
  EXPECT_PRED2(has_part, refusal(all), "has 4 numbers; wanted at most three");
}

TEST(CacheCommand, RefusesByName) {
  const Words all = joined(kJob, kNull);
  EXPECT_PRED2(has_part, refusal(joined(all, {"--mock-data"})),
               "--mock-data is not supported: a job on made-up numbers reads no cache");
  EXPECT_PRED2(has_part, refusal(joined(all, {"--phase-transition-iterations", "9"})), "in each phase");
  EXPECT_PRED2(has_part, refusal(joined(all, {"--multiple-validation-sets"})), "needs --valid-data-path");
  EXPECT_PRED2(has_part, refusal(joined(all, {"--seq-lengh", "9"})),
               "unknown option --seq-lengh; did you mean --seq-length");
  EXPECT_PRED2(has_part, refusal({"corpus"}), "\"corpus\" is no option");
  EXPECT_PRED2(has_part, refusal(kJob), "--tokenizer-type is missing");
  EXPECT_PRED2(has_part, refusal(joined(kJob, {"--tokenizer-type", "BertWordPieceCase"})), "give --like");
  EXPECT_PRED2(has_part, refusal(joined(joined(kJob, kNull), {"--tokenizer-metadata", "m.json"})),
               "give --like");
  EXPECT_PRED2(has_part, refusal(joined(all, {"--null-tokenizer-eod-id", "5"})),
               "--null-tokenizer-eod-id is no option of 0.16.1; give --megatron-core head");
  EXPECT_PRED2(has_part, refusal(joined(all, {"--megatron-core", "head", "--tokenizer-hf-use-fast"})),
               "--tokenizer-hf-use-fast is no option of head; give --megatron-core 0.16.1");
  Words long_run = all;  // products that do not fit 64 bits, and would be small numbers
  long_run[7] = "2305843009213693953";
  EXPECT_PRED2(has_part, refusal(long_run), "--global-batch-size 8 for 2305843009213693952 steps");
  long_run[7] = "4";
  long_run[9] = "2305843009213693953";
  EXPECT_PRED2(has_part, refusal(long_run), "wanted at most 140737488355328 samples");
  Words growing = joined(all, {"--rampup-batch-size", "1", "1", "9223372036854775807"});
  growing[6] = "--train-samples";  // refused before the steps are counted, which would take minutes
  growing[7] = "9223372036854775807";
  growing[13] = "2147483647";
  EXPECT_PRED2(has_part, refusal(growing), "--train-samples 9223372036854775807; wanted at most");
  Words without = all;
  without.resize(without.size() - 6);
  EXPECT_PRED2(has_part, refusal(without), "--global-batch-size is missing");
  Words empty = all;
  empty[1] = "long";  // 21 documents
  empty[3] = "98,1,1";
  EXPECT_PRED2(has_part, refusal(empty), "--split 98,1,1 leaves no document for valid");
}

}  // namespace
}  // namespace megalith
