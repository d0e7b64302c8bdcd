#include "libcore/data/samples/dataset_builder.h"

#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/hash/sha256.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

template <class Values>
std::string hash_of(const Values& values) {
  return sha256_hex({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(*values.data())});
}

/// The lines of parts.txt about a dataset.
void add_lines(const GptDataset& data, std::vector<std::string>& lines) {
  const GptIndex& index = data.index();
  lines.push_back(concat("dataset ", data.size(), ' ', hash_of(index.documents), ' ',
                         std::visit([](const auto& v) { return hash_of(v); }, index.samples), ' ',
                         std::visit([](const auto& v) { return hash_of(v); }, index.shuffle)));
}
void add_lines(const BlendedDataset& blend, std::vector<std::string>& lines) {
  for (const GptDataset& data : blend.datasets()) add_lines(data, lines);
  lines.push_back(concat("blend ", blend.size(), ' ', hash_of(blend.index().dataset), ' ',
                         hash_of(blend.index().sample)));
}

/// A case of parts.txt: "0 --seed 21 --seq-length 16 --samples 200 | 0.3 mixed 0.7 long".
struct PartCase {
  size_t part = 0;
  DatasetRequest request = {};
  bool each = false;
  std::vector<std::string> words = {};
};
PartCase parse_case(const std::string& text) {
  PartCase parsed;
  const std::vector<std::string> words = split(text, ' ');
  parsed.part = static_cast<size_t>(*parse_int(words[0]));
  parsed.request.seed = static_cast<uint32_t>(*parse_int(words[2]));
  parsed.request.seq_length = *parse_int(words[4]);
  parsed.request.samples[parsed.part] = parse_int(words[6]);
  parsed.each = words[7] == "--each";
  for (size_t i = parsed.each ? 9 : 8; i < words.size(); ++i)
    parsed.words.push_back(parse_double(words[i]) || parse_budget(words[i])
                               ? words[i]
                               : test::test_data("data/goldens/" + words[i]));
  return parsed;
}

std::vector<std::string> built(const PartCase& one) {
  const OpenBlend open = open_blend(one.words);
  std::vector<TrainingDataset> sets;
  if (one.each)
    sets = build_each(open, one.request, one.part);
  else
    sets.push_back(build_whole(open, one.request, one.part));
  std::vector<std::string> lines;
  for (const TrainingDataset& set : sets)
    std::visit([&](const auto& source) { add_lines(source, lines); }, set.source());
  return lines;
}

TEST(DatasetBuilder, EqualsMegatronsForPartsOfTheirOwn) {
  std::ifstream golden(test::test_data("data/goldens/parts.txt"));
  std::vector<std::pair<std::string, std::vector<std::string>>> cases;
  for (std::string line; std::getline(golden, line);)
    line.starts_with("case ") ? cases.push_back({line.substr(5), {}}) : cases.back().second.push_back(line);
  ASSERT_EQ(cases.size(), 9U);
  for (const auto& [text, lines] : cases) EXPECT_EQ(built(parse_case(text)), lines) << text;
}

std::string refusal(const std::vector<std::string>& words, int64_t seq_length = 16,
                    ErrorKind kind = ErrorKind::kUsage) {
  try {
    build_each(open_blend(words), {.seq_length = seq_length}, 1);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return {};
}

TEST(DatasetBuilder, EvaluatesNoWeightedDatasetsOneByOne) {
  const std::string mixed = test::test_data("data/goldens/mixed"),
                    long_ = test::test_data("data/goldens/long");
  EXPECT_EQ(refusal({mixed, "tokens=5", long_, "tokens=9"}).find("the valid data have budgets"), 0U);
  EXPECT_EQ(refusal({"1", mixed, "2", long_}).find("the valid data have weights"), 0U);
  EXPECT_EQ(refusal({mixed, long_}), "");
}

// A set without a sample would have the loss 0.
TEST(DatasetBuilder, EvaluatesNoDatasetThatIsShorterThanASample) {
  const std::string mixed = test::test_data("data/goldens/mixed");
  const int64_t tokens = IndexedDataset(mixed).tokens();
  EXPECT_EQ(refusal({mixed}, tokens - 1), "");  // a sample of L tokens takes L + 1 of the dataset
  EXPECT_EQ(
      refusal({mixed}, tokens, ErrorKind::kData)
          .find(concat(mixed, ": holds ", tokens, " tokens, too few for a sample of --seq-length ", tokens)),
      0U);
}

}  // namespace
}  // namespace megalith
