// Compares losses, gradients, logits and greedy tokens with those of transformers and torch:
// tools/golden/make_train_goldens.py (torch 2.15.0, transformers 5.23.0).
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/checkpoint/native/params_io.h"
#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/checkpoint/views/renamed_file.h"
#include "libcore/checkpoint/views/weights_folder.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/generate/generate.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"
#include "tests/support/name_maps.h"
#include "tests/support/tiny_model.h"

namespace megalith {
namespace {

class GoldenTest : public testing::TestWithParam<const char*> {
 protected:
  std::string folder() const { return test::test_data(concat("parity/goldens/", GetParam())); }
  const NameMap& names() const { return hf_.family->names; }
  int number(const char* key) const { return static_cast<int>(golden_[key].as_int()); }

  ModelConfig config() const {
    ModelConfig config = hf_.config;
    config.seq_length = number("seq");
    return config;
  }
  std::unique_ptr<test::TinyModel> model() const {
    auto model = std::make_unique<test::TinyModel>(config());
    const RenamedTensorFile file(std::make_unique<WeightsFolder>(folder()), names(), config());
    load_params(file, model->table, model->stream);
    return model;
  }

  /// The first step's batch: row r has the seq + 1 tokens from r * seq on.
  test::HostBatch batch() const {
    test::HostBatch out(config(), number("seq"), number("batch"));
    const Json::Array& tokens = golden_["tokens"].as_array();
    for (int64_t position = 0; position < out.s; ++position)
      for (int64_t sample = 0; sample < out.b; ++sample) {
        const auto to = static_cast<size_t>(position * out.b + sample);
        const auto from = static_cast<size_t>(sample * out.s + position);
        out.tokens[to] = static_cast<int32_t>(tokens[from].as_int());
        out.labels[to] = static_cast<int32_t>(tokens[from + 1].as_int());
      }
    std::fill(out.mask.begin(), out.mask.end(), 1.0f);
    return out;
  }

  Json golden_ = Json::load(folder() + ".json");
  HfModel hf_ = parse_hf_config(Json::load(folder() + "/config.json"), folder());
};
INSTANTIATE_TEST_SUITE_P(Families, GoldenTest,
                         testing::Values("train-gpt2", "train-gpt2-clip", "train-llama", "train-llama-clip",
                                         "train-qwen3", "train-smollm3", "train-phi3", "train-phi4",
                                         "train-yarn", "train-starcoder2", "train-stablelm", "train-gpt_neox",
                                         "train-falcon", "train-falcon_7b", "train-qwen2-windows",
                                         "train-olmo2", "train-olmo3", "train-granite"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

double norm(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += double{v} * v;
  return std::sqrt(sum);
}

// Compares fp32 with fp64 goldens: torch's own fp32 run differs from them by up to 3e-7.
TEST_P(GoldenTest, TheFirstLossIsTransformers) {
  const std::unique_ptr<test::TinyModel> m = model();
  const double expected = golden_["losses"].as_array()[0].as_double();
  EXPECT_NEAR(m->loss(batch().view(), true), expected, 1e-6 * expected);
}

TEST_P(GoldenTest, EveryGradientHasTorchsNorm) {
  const std::unique_ptr<test::TinyModel> m = model();
  m->loss(batch().view(), true);
  const Json& expected = golden_["step0_param_grad_norms"];
  size_t compared = 0;
  for (const RenamedTensor& renamed : renamed_tensors(names(), config())) {
    const std::vector<float> ours = m->read(m->table.find(renamed.ours)->grad);
    for (size_t part = 0; part < renamed.theirs.size(); ++part, ++compared) {
      std::vector<float> theirs(static_cast<size_t>(renamed.theirs[part].shape.elements()));
      test::to_theirs(renamed, part, {ours.data(), DType::kF32, renamed.shape},
                      {theirs.data(), DType::kF32, renamed.theirs[part].shape});
      const double want = expected[renamed.theirs[part].name].as_double();
      EXPECT_NEAR(norm(theirs), want, 1e-5 * want) << renamed.theirs[part].name;
    }
  }
  EXPECT_EQ(compared, expected.as_object().size());
}

TEST_P(GoldenTest, LogitsAreTransformers) {
  const std::unique_ptr<test::TinyModel> m = model();
  const Json::Array& rows = golden_["generation"]["input_ids"].as_array();
  const Json::Array& logits = golden_["generation"]["logits"].as_array();
  const auto length = static_cast<int64_t>(rows[0].as_array().size());
  KvCache cache(*m->backend, m->stage.config(), m->stage.layers(), {}, {.batch = 2, .capacity = length});
  std::vector<int32_t> ids;
  for (size_t position = 0; position < static_cast<size_t>(length); ++position)
    for (const Json& row : rows) ids.push_back(static_cast<int32_t>(row.as_array()[position].as_int()));
  const std::vector<float> ours =
      m->read(m->stage.logits(m->ctx(false), {ids.data(), DType::kI32, {length, 2}}, length, cache));
  const auto vocabulary = static_cast<size_t>(number("vocab"));
  double worst = 0;
  for (size_t row = 0; row < 2; ++row)
    for (size_t position = 0; position < static_cast<size_t>(length); ++position)
      for (size_t i = 0; i < vocabulary; ++i) {
        const double want = logits[row].as_array()[position].as_array()[i].as_double();
        worst = std::max(worst, std::abs(ours[(position * 2 + row) * vocabulary + i] - want));
      }
  EXPECT_LT(worst, 1e-5);
}

TEST_P(GoldenTest, GreedyTokensAreTransformers) {
  const std::unique_ptr<test::TinyModel> m = model();
  for (const Json& row : golden_["generation"]["greedy"].as_array()) {
    std::vector<int32_t> expected;
    for (const Json& id : row.as_array()) expected.push_back(static_cast<int32_t>(id.as_int()));
    const std::vector<std::vector<int32_t>> prompts{{expected.begin(), expected.begin() + 8}};
    Generator generator(m->stage, m->stream, {});
    const auto out = generator.run({.prompts = prompts,
                                    .sampling = {.max_new_tokens = 16},
                                    .stop_tokens = {},
                                    .on_token = {},
                                    .on_end = {}});
    EXPECT_EQ(out[0].tokens, std::vector<int32_t>(expected.begin() + 8, expected.end()));
  }
}

}  // namespace
}  // namespace megalith
