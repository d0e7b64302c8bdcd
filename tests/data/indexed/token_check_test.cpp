#include "libcore/data/indexed/token_check.h"

#include <array>
#include <filesystem>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/hash/sha256.h"
#include "libcore/io/cache/build_cache.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"

namespace megalith {
namespace {

using test::TempDir;

/// Writes three documents: one of 3 ids, an empty one, and one with sequences of 0 and 4 ids. The last id is
/// `last`.
IndexedDataset with_last_id(const std::string& prefix, IndexedDType dtype, int32_t last) {
  IndexedDatasetWriter writer(prefix, dtype);
  writer.add_document(std::array<int32_t, 3>{5, 0, 9}, std::array<int32_t, 1>{3});
  writer.add_document({}, {});
  writer.add_document(std::array<int32_t, 4>{1, 2, 3, last}, std::array<int32_t, 2>{0, 4});
  writer.finish();
  return IndexedDataset(prefix);
}

std::string refusal(const IndexedDataset& data, int64_t vocab_size, const std::string& cache = {}) {
  try {
    check_token_ids(data, vocab_size, cache);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.what();
  }
  return "accepted";
}

TEST(TokenCheck, NamesTheDocumentOfAnIdOutsideTheVocabulary) {
  const TempDir dir;
  const IndexedDataset data = with_last_id(dir / "c", IndexedDType::kU16, 50256);
  EXPECT_EQ(refusal(data, 50257), "accepted");
  const std::string message = refusal(data, 50256);
  EXPECT_NE(message.find("c: document 2 (sequence 2, token 3) holds the id 50256, the vocabulary has 50256"),
            std::string::npos)
      << message;
}

IndexedDataset made_with(const std::string& prefix, const std::string& hash) {
  IndexedDataset data = with_last_id(prefix, IndexedDType::kU16, 3);
  const auto sidecar = make_sidecar(prefix, {.tokenizer = "T", .tokenizer_hash = hash, .vocab_size = 10});
  sidecar->commit();
  return data;
}

TEST(TokenizerCheck, RefusesADatasetOfAnotherTokenizer) {
  const TempDir dir;
  const std::vector<IndexedDataset> data = {
      made_with(dir / "a", "aaaa1111bbbb"), made_with(dir / "b", "aaaa1111bbbb"),
      made_with(dir / "c", "cccc2222dddd"), with_last_id(dir / "none", IndexedDType::kU16, 3)};
  const auto refusal_of = [](std::span<const IndexedDataset> some, const RunTokenizer& run) -> std::string {
    try {
      TokenizerCheck(run, false).check(some);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return error.what();
    }
    return "accepted";
  };
  const RunTokenizer a{"T", "aaaa1111bbbb"};
  const std::span all(data);
  EXPECT_EQ(refusal_of(all.first(2), a), "accepted");
  EXPECT_EQ(refusal_of(all.first(2), {}), "accepted");
  EXPECT_EQ(refusal_of(all.last(1), a), "accepted");
  EXPECT_EQ(refusal_of(all.subspan(2, 1), a),
            (dir / "c") +
                ": was made with T of 10 ids (cccc2222), this run's is T (aaaa1111): the same ids stand for "
                "different text; give the tokenizer that it was made with, or preprocess the text again, or "
                "--allow-tokenizer-mismatch to train anyway");
  const std::string blend = refusal_of(all, {});
  EXPECT_EQ(blend.find((dir / "c") + ": was made with T of 10 ids (cccc2222), " + (dir / "a") +
                       " with T of 10 ids"),
            0u)
      << blend;
  const test::LogLines lines;
  TokenizerCheck(a, true).check(all);
  ASSERT_EQ(lines.lines.size(), 1u);
  EXPECT_EQ(lines.lines[0].find("warning: " + (dir / "c") + ": was made with"), 0u) << lines.lines[0];
}

// A run without a tokenizer calls check() once for --train-data-path and once for --valid-data-path. The
// second call must expect the first call's tokenizer.
TEST(TokenizerCheck, RemembersTheDatasetsOfEarlierCalls) {
  const TempDir dir;
  const std::vector<IndexedDataset> data = {made_with(dir / "a", "aaaa1111bbbb"),
                                            made_with(dir / "c", "cccc2222dddd")};
  const std::span all(data);
  TokenizerCheck parts({}, false);
  parts.check(all.first(1));
  parts.check(all.first(1));
  try {
    parts.check(all.last(1));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_EQ(std::string(error.what())
                  .find((dir / "c") + ": was made with T of 10 ids (cccc2222), " + (dir / "a") + " with T"),
              0u)
        << error.what();
  }
}

// The model was trained on the ids of its tokenizer, so it is checked whether or not the run has a tokenizer.
TEST(TokenizerCheck, HoldsAModelToItsTokenizer) {
  const TempDir dir;
  const std::vector<IndexedDataset> data = {made_with(dir / "a", "aaaa1111bbbb"),
                                            made_with(dir / "c", "cccc2222dddd")};
  const RunTokenizer a{"T", "aaaa1111bbbb"}, c{"T", "cccc2222dddd"};
  const std::span all(data);
  TokenizerCheck without({}, false);
  without.check_model("ck", a);
  without.check(all.first(1));
  try {
    without.check(all.last(1));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_EQ(
        std::string(error.what())
            .find((dir / "c") + ": was made with T of 10 ids (cccc2222), the model in ck with T (aaaa1111)"),
        0u)
        << error.what();
  }
  TokenizerCheck with(c, false);
  with.check_model("ck", c);
  try {
    with.check_model("ck", a);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "ck: was trained with T (aaaa1111), this run's is T (cccc2222): the same ids stand for different "
        "text; give the tokenizer that it was trained with, or --allow-tokenizer-mismatch to train anyway");
  }
  const test::LogLines lines;
  TokenizerCheck(c, true).check_model("ck", a);
  ASSERT_EQ(lines.lines.size(), 1u);
  EXPECT_EQ(lines.lines[0].find("warning: ck: was trained with T"), 0u) << lines.lines[0];
}

TEST(TokenCheck, RefusesNegativeIds) {
  const TempDir dir;
  EXPECT_NE(refusal(with_last_id(dir / "c", IndexedDType::kI32, -7), 100).find("holds the id -7"),
            std::string::npos);
}

TEST(TokenCheck, ScansEveryToken) {
  const TempDir dir;
  // the scan takes three steps, the last of which has an odd number of tokens
  constexpr int32_t kTokens = 9'000'001;
  std::vector<int32_t> ids(kTokens, 17);
  for (const int32_t at : {0, (1 << 22) - 1, 1 << 22, kTokens - 1}) {
    ids[static_cast<size_t>(at)] = 40000;
    ids[static_cast<size_t>(at) / 2 + 1] = 3;
    IndexedDatasetWriter writer(dir / "c", IndexedDType::kU16);
    writer.add_document(ids, std::array<int32_t, 1>{kTokens});
    writer.finish();
    EXPECT_EQ(scan_tokens(IndexedDataset(dir / "c")), (TokenRange{3, 40000})) << at;
    ids.assign(kTokens, 17);
  }
  EXPECT_EQ(scan_tokens(with_last_id(dir / "d", IndexedDType::kI64, -3)), (TokenRange{-3, 9}));
  IndexedDatasetWriter(dir / "e", IndexedDType::kU16).finish();
  EXPECT_EQ(scan_tokens(IndexedDataset(dir / "e")), (TokenRange{0, -1}));
}

TEST(TokenCheck, BelievesASidecarThatDescribesTheDataset) {
  const TempDir dir;
  const IndexedDataset data = with_last_id(dir / "c", IndexedDType::kU16, 99);
  Sidecar sidecar{.documents = 3, .sequences = 3, .tokens = 7, .max_token_id = 99};
  make_sidecar(dir / "c", sidecar)->commit();
  EXPECT_EQ(refusal(data, 100), "accepted");
  EXPECT_NE(refusal(data, 99).find("document 2"), std::string::npos);
  // as if from another dataset with the same counts: the message must name the sidecar
  sidecar.max_token_id = 200;
  make_sidecar(dir / "c", sidecar)->commit();
  EXPECT_NE(refusal(data, 100).find("c.json: mentions a token id"), std::string::npos);
  sidecar.tokens = 8;  // the counts no longer match this dataset, so it must be scanned
  make_sidecar(dir / "c", sidecar)->commit();
  EXPECT_EQ(refusal(data, 100), "accepted");
}

TEST(TokenCheck, KeepsTheResultOfAScanUntilTheFilesChange) {
  const TempDir dir;
  const auto files = [&] {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(dir / "cache"))
      paths.push_back(entry.path());
    return paths;
  };
  EXPECT_EQ(refusal(with_last_id(dir / "c", IndexedDType::kU16, 50), 100, dir / "cache"), "accepted");
  ASSERT_EQ(files().size(), 1u);
  const IndexedDataset data(dir / "c");
  const CachedFile kept(dir / "cache", "token-range", 1, sha256_hex(data.file_key()));
  const TokenRange other{0, 7};  // not the real range: the second check accepts it only if it reads the cache
  kept.store({reinterpret_cast<const char*>(&other), sizeof other});
  EXPECT_EQ(refusal(data, 8, dir / "cache"), "accepted");
  {
    const test::LogLines log;
    write_file(kept.path(), "damaged");  // a damaged file must not be used
    EXPECT_NE(refusal(data, 8, dir / "cache").find("id 9"), std::string::npos);
    EXPECT_EQ(log.lines.size(), 1U);
  }
  EXPECT_NE(refusal(with_last_id(dir / "c", IndexedDType::kU16, 60), 60, dir / "cache").find("id 60"),
            std::string::npos);
  EXPECT_EQ(files().size(), 2u);
}

}  // namespace
}  // namespace megalith
