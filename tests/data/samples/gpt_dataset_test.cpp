#include "libcore/data/samples/gpt_dataset.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/samples/blended_dataset.h"
#include "libcore/data/samples/dataset_builder.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::TempDir;

/// Writes a dataset with one document for each of `lengths`. The ids count up from 0 through all documents.
IndexedDataset counting(const std::string& prefix, const std::vector<int32_t>& lengths) {
  IndexedDatasetWriter writer(prefix, IndexedDType::kU16);
  int32_t id = 0;
  for (const int32_t n : lengths) {
    std::vector<int32_t> ids(static_cast<size_t>(n));
    for (int32_t& x : ids) x = id++;
    writer.add_document(ids, std::array<int32_t, 1>{n});
  }
  writer.finish();
  return IndexedDataset(prefix);
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Split, EqualsMegatronsRounding) {
  std::ifstream file(test::test_data("data/goldens/splits.txt"));
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const std::vector<std::string> cells = split(line, '|');
    const auto ranges = split_sequences(cells[0], *parse_int(cells[1]));
    for (size_t i = 0; i < 3; ++i) {
      const std::string got = ranges[i] ? concat(ranges[i]->begin, ' ', ranges[i]->end) : "None";
      EXPECT_EQ(got, cells[i + 2]) << line;
    }
  }
  EXPECT_EQ(rows, 100);
}

TEST(Split, WithAllPartsGivesEachSome) {
  EXPECT_EQ(split_with_all_parts("969, 30, 1", 5), "3,1,1");
  EXPECT_EQ(split_with_all_parts("969, 30, 1", 300), "270,15,15");
  EXPECT_EQ(split_with_all_parts("99,1", 5), "4,1,0");
  EXPECT_EQ(split_with_all_parts("969, 30, 1", 2), "");
  for (int64_t documents = 3; documents < 1000; ++documents)
    for (const auto& part : split_sequences(split_with_all_parts("969, 30, 1", documents), documents))
      EXPECT_TRUE(part && part->begin < part->end) << documents;
}

TEST(Split, RefusesWhatIsNoSplit) {
  EXPECT_THROW(split_sequences("1,2,3,4", 10), Error);
  EXPECT_THROW(split_sequences("0,0,0", 10), Error);
  EXPECT_THROW(split_sequences("", 10), Error);
  EXPECT_THROW(split_sequences("1.2.3", 10), Error);
}

// Computed by hand: a document of the ids 0 to 10, cut every 4 ids with an overlap of one id, gives the
// samples 0-4 and 4-8; the rest, 8-10, is too short.
TEST(GptDataset, SplitsOneDocumentWithOneIdOfOverlap) {
  const TempDir dir;
  const GptDataset d(counting(dir / "c", {11}), {.range = {0, 1}, .samples = {}, .seq_length = 4});
  ASSERT_EQ(d.size(), 2);
  std::vector<std::vector<int64_t>> samples = {d.ids(0), d.ids(1)};
  std::sort(samples.begin(), samples.end());
  EXPECT_EQ(samples[0], (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(samples[1], (std::vector<int64_t>{4, 5, 6, 7, 8}));
}

TEST(GptDataset, RepeatsEpochsUntilTheSamplesSuffice) {
  const TempDir dir;
  const IndexedDataset data = counting(dir / "c", {5, 6});
  for (const int64_t n : {1, 2, 3, 5, 8, 13, 100}) {
    const GptDataset d(data, {.range = {0, 2}, .samples = n, .seq_length = 4});
    EXPECT_GE(d.size(), n);
    EXPECT_GE(d.index().epochs * 11, n * 4 + 1);
    EXPECT_LT((d.index().epochs - 1) * 11, n * 4 + 1);
    for (int64_t i = 0; i < d.size(); ++i) EXPECT_EQ(d.ids(i).size(), 5u);
  }
}

TEST(GptDataset, RefusesSamplesOfAnEmptyPart) {
  const TempDir dir;
  const IndexedDataset data = counting(dir / "c", {5, 0, 0});
  const GptSpec spec{.range = {1, 3}, .samples = 7, .seq_length = 4, .name = "test"};
  EXPECT_NE(message_of([&] {
              build_gpt_index(data, spec);
            }).find("split test (sequences 1 to 3 of 3) holds no token, but 7 samples are requested"),
            std::string::npos);
  EXPECT_EQ(build_gpt_index(data, {.range = {1, 3}, .samples = {}, .seq_length = 4}).size(), 0);
  EXPECT_EQ(build_gpt_index(data, {.range = {1, 3}, .samples = 0, .seq_length = 4}).size(), 0);
}

TEST(GptDataset, RefusesAPartialSampleThatEndsInAnEmptySequence) {
  const TempDir dir;
  const IndexedDataset data = counting(dir / "c", {5, 0});
  int refused = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const GptSpec spec{.range = {0, 2}, .samples = {}, .seq_length = 3, .seed = seed, .drop_last = false};
    const std::string message = message_of([&] { build_gpt_index(data, spec); });
    const bool empty_last = message.find("ends with an empty one") != std::string::npos;
    EXPECT_TRUE(empty_last || message == "nothing was thrown") << message;
    refused += empty_last;
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 20);
}

TEST(GptDataset, RefusesFloatingPointData) {
  const TempDir dir;
  const IndexedDataset data = counting(dir / "c", {4});
  std::fstream idx(dir / "c.idx", std::ios::in | std::ios::out | std::ios::binary);
  idx.seekp(17).put(7).seekp(34).put(2);  // changes the header from four uint16 to two float32
  idx.close();
  EXPECT_NE(message_of([&] {
              GptDataset(IndexedDataset(dir / "c"), {.range = {0, 1}, .samples = {}, .seq_length = 2});
            }).find("holds float32 values"),
            std::string::npos);
}

TEST(GptDataset, RefusesLengthsAndCountsOutOfRange) {
  const TempDir dir;
  const IndexedDataset data = counting(dir / "c", {4});
  EXPECT_THROW(build_gpt_index(data, {.range = {0, 1}, .samples = {}, .seq_length = 0}), Error);
  EXPECT_THROW(build_gpt_index(data, {.range = {0, 1}, .samples = {}, .seq_length = int64_t{1} << 31}),
               Error);
  EXPECT_THROW(build_gpt_index(data, {.range = {0, 1}, .samples = -1, .seq_length = 4}), Error);
  EXPECT_NE(message_of([&] {
              build_gpt_index(data, {.range = {0, 1}, .samples = int64_t{1} << 32, .seq_length = 4096});
            }).find("would repeat them"),
            std::string::npos);
}

// Without the last label, 2^25 + 3 tokens leave 2^25 + 2, which binary32 rounds to 2^25: the partial sample
// of two tokens is not counted. One more token gives 2^25 + 3, which rounds to 2^25 + 4, and the partial
// sample is counted.
TEST(GptDataset, CountsAKeptPartialSampleInBinary32AsMegatron) {
  const TempDir dir;
  constexpr int64_t kFullSamples = (int64_t{1} << 25) / 32;
  for (const int32_t tokens : {(1 << 25) + 3, (1 << 25) + 4}) {
    IndexedDatasetWriter(dir / "c", IndexedDType::kU8).finish();
    std::string idx = read_file(dir / "c.idx");
    const int64_t pointer = 0, end = 1;
    idx[18] = 1, idx[26] = 2;  // one sequence, one document
    idx.insert(34, reinterpret_cast<const char*>(&tokens), 4);
    idx.insert(38, reinterpret_cast<const char*>(&pointer), 8);
    idx.append(reinterpret_cast<const char*>(&end), 8);
    std::ofstream(dir / "c.idx", std::ios::binary) << idx;
    std::filesystem::resize_file(dir / "c.bin",
                                 static_cast<uintmax_t>(tokens));  // a sparse file, which takes no disk space
    const GptIndex index = build_gpt_index(
        IndexedDataset(dir / "c"), {.range = {0, 1}, .samples = {}, .seq_length = 32, .drop_last = false});
    EXPECT_EQ(index.size(), tokens == (1 << 25) + 3 ? kFullSamples : kFullSamples + 1) << tokens;
  }
}

TEST(GptDataset, WidensIndicesWhereMegatronDoes) {
  constexpr int64_t kMax32 = std::numeric_limits<int32_t>::max();
  EXPECT_FALSE(wide_sample_index(kMax32, 100));
  EXPECT_TRUE(wide_sample_index(kMax32 + 1, 100));
  EXPECT_FALSE(wide_sample_index(10, std::numeric_limits<int32_t>::max()));
  EXPECT_FALSE(wide_shuffle_index(4294967293));
  EXPECT_TRUE(wide_shuffle_index(4294967294));
}

TEST(Blend, ReadsWeightsAndPrefixes) {
  const auto parse = [](std::vector<std::string> words) { return parse_blend(words); };
  EXPECT_EQ(parse({"a"}).prefixes, (std::vector<std::string>{"a"}));
  EXPECT_EQ(parse({" a ", "b", "c"}).prefixes, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(parse({"a", "b"}).prefixes, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(parse({"a", "b"}).weights.empty());
  EXPECT_EQ(parse({"0.3", "a", "7e-1", "b"}).weights, (std::vector<double>{0.3, 0.7}));
  EXPECT_EQ(parse({"1.0", "a"}).prefixes, (std::vector<std::string>{"a"}));
  EXPECT_NE(message_of([&] {
              parse({"0.3", "a", "b", "c"});
            }).find("\"0.3\" is a weight, but \"b\" is not"),
            std::string::npos);
  EXPECT_THROW(parse({"0", "a"}), Error);
  EXPECT_THROW(parse({"-1", "a"}), Error);
  EXPECT_THROW(parse({"nan", "a"}), Error);
  EXPECT_THROW(parse({"inf", "a"}), Error);
}

TEST(Blend, AddsAsNumpyDoes) {
  std::ifstream file(test::test_data("data/goldens/sums.txt"));
  int rows = 0;
  std::string hex;
  for (size_t n = 0; file >> n >> hex; ++rows) {
    std::vector<double> values;
    for (size_t i = 0; i < n; ++i) values.push_back(static_cast<double>((7919 * i + 13) % 1000) / 7);
    EXPECT_EQ(numpy_sum(values), std::strtod(hex.c_str(), nullptr)) << n;
  }
  EXPECT_EQ(rows, 30);
}

TEST(Blend, ExhaustsEveryDatasetOnce) {
  const std::vector<int64_t> sizes = {7, 1, 30};
  const BlendIndex index = blend_exhaustively(sizes);
  std::vector<int64_t> next(sizes.size(), 0);
  for (size_t i = 0; i < index.dataset.size(); ++i)
    EXPECT_EQ(index.sample[i], next[static_cast<size_t>(index.dataset[i])]++);
  EXPECT_EQ(next, sizes);
}

TEST(BlendedDataset, RefusesMoreSamplesThanADatasetHas) {
  const TempDir dir;
  std::vector<GptDataset> datasets;
  datasets.emplace_back(counting(dir / "c", {9}), GptSpec{.range = {0, 1}, .samples = {}, .seq_length = 4});
  EXPECT_NE(message_of([&] {
              BlendedDataset(datasets, {SharedArray(std::vector<int16_t>{0, 0, 0}),
                                        SharedArray(std::vector<int64_t>{0, 1, 2})});
            }).find("the blend asks for 3 samples, it has 2"),
            std::string::npos);
}

TEST(DatasetBuilder, NeedsACountWithWeights) {
  const TempDir dir;
  counting(dir / "c", {50, 50, 50, 50});
  const OpenBlend open = open_blend({"1.0", dir / "c"});
  EXPECT_NE(message_of([&] {
              build_datasets(open, {.split = "1,0,0", .seq_length = 4});
            }).find("the number of train samples must be given"),
            std::string::npos);
}

TEST(DatasetBuilder, NamesTheDatasetTooShortToBlend) {
  const TempDir dir;
  counting(dir / "c", {50, 50, 50, 50});
  counting(dir / "d", {50, 50, 50, 2});
  const OpenBlend open = open_blend({dir / "c", dir / "d"});
  EXPECT_NE(message_of([&] {
              build_datasets(open, {.split = "3,1,0", .seq_length = 4});
            }).find("d: its valid part is too short for one sample of 4 tokens"),
            std::string::npos);
}

TEST(DatasetBuilder, TellsPaddingFromEndOfDocument) {
  EXPECT_EQ(usable_pad(5, 6), 5);
  EXPECT_EQ(usable_pad(6, 6), -1);
  EXPECT_EQ(usable_pad(std::nullopt, 6), -1);
}

}  // namespace
}  // namespace megalith
