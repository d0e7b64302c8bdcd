#include "libcore/data/samples/sample_order.h"

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/samples/dataset_builder.h"
#include "libcore/hash/sha256.h"
#include "libcore/options/cli.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

/// A case of samples.txt, in which tools/golden/make_dataset_goldens.py recorded the samples that
/// megatron-core drew.
struct Case {
  std::string arguments;
  std::vector<std::string> order, items;
};

std::vector<Case> golden_cases() {
  std::ifstream file(test::test_data("data/goldens/samples.txt"));
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("case "))
      cases.push_back({line.substr(5), {}, {}});
    else
      (line.starts_with("item ") ? cases.back().items : cases.back().order).push_back(line);
  }
  return cases;
}

/// Parses the arguments of a case; the names of datasets become paths in the goldens' folder.
SampleOrderOptions parse_case(const std::string& arguments) {
  std::vector<std::string> words;
  bool in_path = false;
  for (const std::string& word : split(arguments, ' ')) {
    if (word.starts_with("--")) in_path = word == "--data-path";
    const bool name = in_path && !word.starts_with("--") && !parse_double(word) && !parse_budget(word);
    words.push_back(name ? test::test_data("data/goldens/" + word) : word);
  }
  SampleOrderOptions parsed;
  Options options("test", "A test.");
  options.add("Order", parsed);
  options.read(words);
  options.check();
  return parsed;
}

std::vector<std::string> lines_without_config(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with("config ")) lines.push_back(line);
  return lines;
}

TEST(SampleOrder, EqualsMegatronsLineByLine) {
  const std::vector<Case> cases = golden_cases();
  ASSERT_EQ(cases.size(), 19u);
  for (const Case& c : cases) {
    std::ostringstream out;
    dump_sample_order(parse_case(c.arguments), out);
    EXPECT_EQ(lines_without_config(out.str()), c.order) << c.arguments;
  }
}

template <class T>
std::string hash_as(const std::vector<int32_t>& values) {
  const std::vector<T> wide(values.begin(), values.end());
  return sha256_hex({reinterpret_cast<const char*>(wide.data()), wide.size() * sizeof(T)});
}

TEST(SampleOrder, GivesTheModelMegatronsTokensLabelsAndMask) {
  int padded = 0;
  for (const Case& c : golden_cases()) {
    const SampleOrderOptions o = parse_case(c.arguments);
    DatasetRequest request{.split = o.split,
                           .seq_length = o.seq_length,
                           .seed = static_cast<uint32_t>(o.seed),
                           .extra_token = !o.no_extra_token,
                           .keep_last_partial_valid = o.keep_last_partial_valid,
                           .pad = usable_pad(o.pad, o.vocab_size - 1)};
    for (size_t i = 0; i < 3; ++i) {
      const auto n = parse_int(o.samples[i]).value_or(0);
      if (n > 0) request.samples[i] = n;
    }
    const TrainingDatasets datasets = build_datasets(open_blend(o.data_path, o.split), request);
    const auto length = static_cast<size_t>(o.seq_length);
    for (const std::string& line : c.items) {
      const std::vector<std::string> words = split(line, ' ');
      ASSERT_EQ(words[1], "valid");
      std::vector<int32_t> tokens(length), labels(length);
      std::vector<float> mask(length);
      datasets[1]->get(*parse_int(words[2]), {tokens, labels, mask});
      EXPECT_EQ(hash_as<int64_t>(tokens), words[3]) << c.arguments << ": " << line;
      EXPECT_EQ(hash_as<int64_t>(labels), words[4]) << c.arguments << ": " << line;
      EXPECT_EQ(sha256_hex({reinterpret_cast<const char*>(mask.data()), mask.size() * sizeof(float)}),
                words[5])
          << c.arguments << ": " << line;
      padded += std::count(mask.begin(), mask.end(), 0.0f) > 0;
    }
  }
  EXPECT_GT(padded, 3);  // enough samples with padding, or the goldens would not test it
}

TEST(SampleOrder, RefusesWrongSampleCounts) {
  EXPECT_THROW(parse_case("--data-path mixed --seq-length 16 --samples 1 2"), Error);
  EXPECT_THROW(parse_case("--data-path mixed --seq-length 16 --samples 1 2 -3"), Error);
  EXPECT_THROW(parse_case("--data-path mixed --seq-length 16 --samples 1 2 many"), Error);
  EXPECT_THROW(parse_case("--data-path mixed --seq-length 16 --seed 4294967296 --samples 1 2 3"), Error);
}

}  // namespace
}  // namespace megalith
