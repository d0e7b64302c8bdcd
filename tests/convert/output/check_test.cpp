#include "libcore/convert/output/check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/views/weights_folder.h"
#include "libcore/convert/output/output_check.h"
#include "libcore/convert/targets/gguf.h"
#include "libcore/convert/targets/hf.h"
#include "libcore/convert/targets/megalith.h"
#include "libcore/convert/targets/megatron.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/goldens.h"
#include "tests/support/log_lines.h"
#include "tests/support/name_maps.h"

namespace megalith {
namespace {

using test::convert_golden;
using test::LogLines;
using test::MemoryTensors;
using test::TempDir;

std::map<std::string, std::pair<Shape, std::vector<float>>> values_of(const TensorFile& file) {
  std::map<std::string, std::pair<Shape, std::vector<float>>> out;
  for (const StoredTensor& tensor : file.tensors()) {
    const Shape shape = tensor.shape();
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    file.read(Box::whole(tensor.name, shape), {values.data(), DType::kF32, shape});
    out[tensor.name] = {shape, std::move(values)};
  }
  return out;
}

Comparison compare(const ModelView& a, const ModelView& b) {
  return compare_sides(checked_side(a), checked_side(b));
}

class CheckTest : public testing::TestWithParam<const char*> {
 protected:
  const std::string folder_ = convert_golden(GetParam());
  const ModelSource source_{folder_};
  const WeightsFolder theirs_{folder_};
};
INSTANTIATE_TEST_SUITE_P(Families, CheckTest, testing::Values("gpt2", "llama"),
                         [](const auto& family) { return std::string(family.param); });

// Compares the logits of the check's forward pass with those of transformers, for a Hugging Face file and for
// our tensors.
TEST_P(CheckTest, ComputesTransformersLogits) {
  const SafetensorsFile file(folder_ + ".logits.safetensors");
  const int64_t v = source_.config().vocab_size;
  std::vector<int64_t> ids(24);
  std::vector<float> want(static_cast<size_t>(24 * v));
  file.read(Box::whole("ids", {2, 12}), {ids.data(), DType::kI64, {2, 12}});
  file.read(Box::whole("logits", {2, 12, v}), {want.data(), DType::kF32, {2, 12, v}});
  for (const ModelView& view :
       {hugging_face_view(theirs_, source_.config()), our_view(source_.tensors(), source_.config())})
    for (size_t row = 0; row < 2; ++row) {
      const std::vector<int32_t> tokens(ids.begin() + static_cast<int64_t>(row) * 12,
                                        ids.begin() + static_cast<int64_t>(row) * 12 + 12);
      const std::vector<float> got = logits_of(view, tokens);
      double greatest = 0;
      for (size_t i = 0; i < got.size(); ++i)
        greatest = std::max(greatest, std::abs(double{got[i]} - want[row * got.size() + i]));
      EXPECT_LT(greatest, 1e-5);
    }
}

TEST_P(CheckTest, FindsOneWrongRow) {
  const ModelView right = our_view(source_.tensors(), source_.config());
  auto values = values_of(theirs_);
  const MemoryTensors same(values);
  EXPECT_LT(compare(right, hugging_face_view(same, source_.config())).max_difference, 1e-5);
  for (auto& [name, value] : values) {
    if (value.first.rank != 2 || value.first[0] < 3 || name.find("wte") != std::string::npos ||
        name.find("wpe") != std::string::npos || name.find("embed") != std::string::npos)
      continue;
    auto changed = values;
    std::vector<float>& data = changed[name].second;
    const int64_t columns = value.first[1];
    std::swap_ranges(data.begin(), data.begin() + columns, data.begin() + columns);  // exchanges two rows
    const MemoryTensors wrong(changed);
    const Comparison found = compare(right, hugging_face_view(wrong, source_.config()));
    EXPECT_GT(found.max_difference, kSameModel * found.max_logit) << name;
  }
}

TEST(Check, TellsModelsWithNumbersThatAreNotFiniteFromOthers) {
  const ModelSource source(convert_golden("llama"));
  auto values = values_of(source.tensors());
  values["decoder.final_layernorm.weight"].second[3] = std::numeric_limits<float>::infinity();
  const MemoryTensors broken(values);
  const ModelView right = our_view(source.tensors(), source.config());
  const ModelView infinite = our_view(broken, source.config());
  EXPECT_EQ(compare(right, infinite).max_difference, std::numeric_limits<double>::infinity());
  EXPECT_EQ(compare(infinite, right).max_difference, std::numeric_limits<double>::infinity());
  EXPECT_EQ(compare(infinite, infinite).max_difference, 0);
  EXPECT_EQ(first_not_finite(broken), "tensor \"decoder.final_layernorm.weight\" holds inf at element 3");
  EXPECT_EQ(first_not_finite(source.tensors()), "");
}

// Weights that are not finite must be converted unchanged, with a warning that names the input and the
// tensor.
TEST(Check, LetsWeightsThatAreNotFinitePass) {
  const TempDir dir;
  std::filesystem::copy(convert_golden("gpt2"), dir / "model");
  std::string bytes = read_file(dir / "model/model.safetensors");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + bytes.size() - sizeof nan, &nan, sizeof nan);
  write_file(dir / "model/model.safetensors", bytes);
  const ModelSource source(dir / "model");
  const std::string bad = first_not_finite(*source.view().file);
  EXPECT_NE(bad.find("holds nan at element"), std::string::npos) << bad;
  const LogLines log;
  const Conversion conversion{.source = source, .check = true};
  export_hf(conversion, dir / "out");
  const auto tells = [&](const std::string& line) {
    return line.find(dir / "model") != std::string::npos && line.find("not finite") != std::string::npos &&
           line.find(bad) != std::string::npos;
  };
  EXPECT_EQ(std::count_if(log.lines.begin(), log.lines.end(), tells), 1);
  EXPECT_TRUE(read_file(dir / "out/model.safetensors").ends_with(bytes.substr(bytes.size() - 64)));
}

// Damaged weights must be reported even if the check's few tokens do not use them, and even without a check.
TEST(Check, TellsOfWeightsThatItsTokensDoNotReach) {
  const TempDir dir;
  const ModelSource sound(convert_golden("gpt2"));
  export_hf({.source = sound}, dir / "model");
  const SafetensorsFile file(dir / "model/model.safetensors");
  const StoredTensor& wpe = file.at("transformer.wpe.weight");
  const int64_t elements = wpe.shape().elements();
  std::vector<float> values(static_cast<size_t>(elements));
  file.read(Box::whole(wpe.name, wpe.shape()), {values.data(), DType::kF32, wpe.shape()});
  std::string bytes = read_file(dir / "model/model.safetensors");
  const std::string_view whole(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  const size_t at = bytes.find(whole);
  ASSERT_NE(at, std::string::npos);
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinite = std::numeric_limits<float>::infinity();
  // The last two values belong to the last position, which the check's tokens do not reach.
  std::memcpy(bytes.data() + at + whole.size() - 2 * sizeof nan, &nan, sizeof nan);
  std::memcpy(bytes.data() + at + whole.size() - sizeof nan, &infinite, sizeof nan);
  write_file(dir / "model/model.safetensors", bytes);
  const ModelSource source(dir / "model");
  const std::string want =
      concat("tensor \"transformer.wpe.weight\" holds nan at element ", elements - 2, ", the first of 2 ");
  for (const bool check : {true, false})
    for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
      const LogLines log;
      export_hf({.source = source, .dtype = dtype, .check = check},
                concat(dir / "out", check, name_of(dtype)));
      const auto tells = [&](const std::string& line) {
        return line.find("warning: " + (dir / "model") + ": " + want) != std::string::npos;
      };
      EXPECT_EQ(std::count_if(log.lines.begin(), log.lines.end(), tells), 1) << name_of(dtype) << '\n'
                                                                             << join(log.lines, "\n");
    }
}

// Ranks hold parts of some tensors and copies of others, and padding rows repeat the last row. Each number
// must be counted only once.
TEST(Check, CountsNumbersThatAreNotFiniteOnceOverAllRanks) {
  using Places = std::vector<std::pair<const char*, int64_t>>;
  const auto said = [](const ModelSource& source, const MegatronLayout& layout, const Places& places) {
    auto values = values_of(source.tensors());
    for (const auto& [name, place] : places)
      values[name].second[static_cast<size_t>(place)] = std::numeric_limits<float>::quiet_NaN();
    const MemoryTensors tensors(values);
    const TempDir dir;
    const LogLines log;
    export_megatron({.source = source, .tensors = &tensors}, dir / "out", layout);
    std::string found;
    for (const std::string& line : log.lines)
      if (const size_t at = line.find("tensor \""); at != std::string::npos)
        found += line.substr(at, line.find(" not finite") - at);
    return found;
  };
  const std::pair<const char*, MegatronLayout> cases[] = {{"gpt2", {.tensor = 1, .pipeline = 1}},
                                                          {"gpt2", {.tensor = 1, .pipeline = 2}},
                                                          {"llama", {.tensor = 2, .pipeline = 1}},
                                                          {"llama", {.tensor = 2, .pipeline = 3}}};
  for (const auto& [family, layout] : cases) {
    SCOPED_TRACE(concat(family, ' ', layout.tensor, ' ', layout.pipeline));
    const ModelSource source(convert_golden(family));
    const ModelConfig& config = source.config();
    const int64_t last = config.vocab_size * config.hidden - 1, row = config.ffn_hidden;
    EXPECT_EQ(said(source, layout, {{"embedding.word_embeddings.weight", last}}),
              concat("tensor \"embedding.word_embeddings.weight\" holds nan at element ", last,
                     ", the only number that is"));
    EXPECT_EQ(
        said(source, layout, {{"decoder.layers.1.input_layernorm.weight", 5}}),
        "tensor \"decoder.layers.1.input_layernorm.weight\" holds nan at element 5, the only number that "
        "is");
    // The columns are divided among the ranks: the last rank holds the end of the first row, the first rank
    // the beginning of the second row.
    EXPECT_EQ(said(source, layout,
                   {{"decoder.layers.1.mlp.linear_fc2.weight", row - 1},
                    {"decoder.layers.1.mlp.linear_fc2.weight", row}}),
              concat("tensor \"decoder.layers.1.mlp.linear_fc2.weight\" holds nan at element ", row - 1,
                     ", the first of 2 numbers that are"));
  }
}

TEST(Check, SaysThatNothingWasCompared) {
  const ModelSource source(convert_golden("gpt2"));
  auto values = values_of(source.tensors());
  values["decoder.layers.0.input_layernorm.weight"].second[0] = std::numeric_limits<float>::quiet_NaN();
  const MemoryTensors sick(values);
  const ModelView view = our_view(sick, source.config());
  const std::string text = text_of(compare(view, view));
  EXPECT_EQ(text.find("check: no logit of "), 0U) << text;
  EXPECT_NE(text.find(" tokens is finite in both models; nothing was compared; "), std::string::npos) << text;
  const ModelView sound = our_view(source.tensors(), source.config());
  EXPECT_EQ(text_of(compare(sound, sound)).find("check: max difference of the logits"), 0U);
}

// Converts the number 70,000, which fits fp32 but is too large for fp16.
TEST(Check, TellsOfATypeThatIsTooNarrow) {
  const ModelSource source(convert_golden("gpt2"));
  auto values = values_of(source.tensors());
  values["decoder.final_layernorm.weight"].second[3] = 70'000;
  const MemoryTensors tensors(values);
  const TempDir dir;
  const auto warnings = [&](DType dtype) {
    const LogLines log;
    export_hf({.source = source, .dtype = dtype, .tensors = &tensors}, dir / std::string(name_of(dtype)));
    return std::count_if(log.lines.begin(), log.lines.end(), [](const std::string& line) {
      return line.find("transformer.ln_f.weight\" holds inf at element 3, the only number") !=
             std::string::npos;
    });
  };
  EXPECT_EQ(warnings(DType::kF32), 0);
  EXPECT_EQ(warnings(DType::kBf16), 0);
  EXPECT_EQ(warnings(DType::kF16), 1);
}

// A wrong output must never appear under the name of the output.
TEST(Check, StopsAConversionWhoseResultIsAnotherModel) {
  const ModelSource source(convert_golden("gpt2"));
  auto values = values_of(source.tensors());
  const MemoryTensors tensors(values);
  const TempDir dir;
  const LogLines log;
  const Conversion conversion{.source = source, .tensors = &tensors, .check = true};
  export_hf(conversion, dir / "right");
  values["decoder.layers.1.mlp.linear_fc2.bias"].second[0] += 1;
  const MemoryTensors other(values);
  EXPECT_THROW(OutputCheck(conversion).compare(our_view(other, source.config()), false), Error);
  EXPECT_NO_THROW(OutputCheck(conversion).compare(our_view(other, source.config()), true));
  EXPECT_TRUE(file_exists(dir / "right/model.safetensors"));
  ASSERT_FALSE(log.lines.empty());
  EXPECT_NE(log.lines.back().find("check: max difference of the logits of 8 tokens"), std::string::npos)
      << log.lines.back();
}

// The check must read each tensor at the offset in its file's header, not at the offset that the writer used.
TEST(Check, FindsTensorsThatAreWrittenInEachOthersPlace) {
  const ModelSource source(convert_golden("gpt2"));
  const Conversion conversion{.source = source, .check = true};
  const OutputPlan plan = plan_hf(conversion, UINT64_MAX);
  for (const bool right : {true, false}) {
    const TempDir dir;
    PlacedFiles files(memory_for(plan));
    OutputCheck check(conversion);
    std::vector<PlacedFile> placed = create_safetensors(plan, dir.path().string(), files);
    const auto at = [&](const std::string& name) -> uint64_t& {
      for (size_t i = 0; i < plan[0].tensors.size(); ++i)
        if (plan[0].tensors[i].name == name) return placed[0].offsets[i];
      throw std::out_of_range(name);
    };
    if (!right) std::swap(at("transformer.h.0.mlp.c_fc.weight"), at("transformer.h.1.mlp.c_fc.weight"));
    check.follow(files, [&](const CheckRun& run) {
      const WeightsFolder written(dir.path().string(), CrcCheck::kYes, &files);
      return checked_side(hugging_face_view(written, source.config()), run);
    });
    write_tensors(conversion.file(), plan, placed, files);
    if (right)
      EXPECT_NO_THROW(check.compare_followed(false));
    else
      EXPECT_THROW(check.compare_followed(false), Error);
  }
}

TEST(Check, SeesEveryTargetAsTheSameModel) {
  for (const char* model : {"gpt2", "llama"}) {
    const TempDir dir;
    const LogLines log;
    const ModelSource source(convert_golden(model));
    const Conversion conversion{.source = source, .check = true};  // throws if the logits differ
    export_hf(conversion, dir / "hf", 20'000);
    export_checkpoint(conversion, dir / "ours");
    export_megatron(conversion, dir / "megatron", {.tensor = 1, .pipeline = 1});
    export_gguf(conversion, dir / "model.gguf", {});
    export_gguf(conversion, dir / "q8.gguf", Storage::kQ8);
    EXPECT_EQ(std::count_if(log.lines.begin(), log.lines.end(),
                            [](const std::string& line) { return line.starts_with("check: "); }),
              5);
    // The check has found no difference, so the stored numbers must be equal, too.
    const auto wanted = values_of(source.tensors());
    for (const char* folder : {"hf", "ours", "megatron"}) {
      const ModelSource written(dir / folder, {.vocab_size = source.config().vocab_size});
      EXPECT_EQ(values_of(written.tensors()), wanted) << folder;
    }
  }
}

/// A side that ran from one second to another of some clock.
CheckedSide ran(int from, int to) {
  const std::chrono::steady_clock::time_point zero{};
  return {.path = {},
          .logits = {},
          .begin = zero + std::chrono::seconds(from),
          .end = zero + std::chrono::seconds(to)};
}

TEST(Check, CountsATimeInWhichBothModelsRanOnce) {
  EXPECT_EQ(compare_sides(ran(0, 4), ran(1, 6)).seconds, 6);
  EXPECT_EQ(compare_sides(ran(2, 3), ran(0, 9)).seconds, 9);
  EXPECT_EQ(compare_sides(ran(0, 4), ran(7, 8)).seconds, 5) << "what lies between them is no part of it";
}

}  // namespace
}  // namespace megalith
