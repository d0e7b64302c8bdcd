#include "libcore/convert/output/adapter.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/convert/targets/hf.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/goldens.h"

namespace megalith {
namespace {

using test::convert_golden;
using test::TempDir;
namespace fs = std::filesystem;

std::string refusal(const std::function<void()>& action, ErrorKind kind = ErrorKind::kData) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

class AdapterTest : public testing::TestWithParam<const char*> {
 protected:
  const std::string model_ = GetParam();
  const ModelSource source_{convert_golden(model_)};
  const Adapter adapter_{convert_golden("lora_" + model_)};
  const TempDir dir_;
};
INSTANTIATE_TEST_SUITE_P(Families, AdapterTest, testing::Values("gpt2", "llama"),
                         [](const auto& family) { return std::string(family.param); });

// Compares the merged weights with those of peft. The adapter for gpt2 has Conv1D and fused QKV. The adapter
// for llama is rank-stabilised, has rank and alpha patterns, and leaves out one part of QKV.
TEST_P(AdapterTest, MergesToTheWeightsOfPeft) {
  const auto merged = merge_adapter(source_.tensors(), source_.config(), adapter_);
  export_hf({.source = source_, .tensors = merged.get()}, dir_ / "merged");
  const SafetensorsFile got(dir_ / "merged/model.safetensors"),
      changed(convert_golden("lora_" + model_ + ".merged.safetensors")),
      base(convert_golden(model_ + "/model.safetensors"));
  ASSERT_EQ(changed.tensors().size(), adapter_.modules().size());
  double greatest = 0;
  for (const StoredTensor& tensor : got.tensors()) {
    const bool differs = changed.find(tensor.name) != nullptr;
    const Shape shape = tensor.shape();
    std::vector<float> a(static_cast<size_t>(shape.elements())), b(a.size());
    got.read(Box::whole(tensor.name, shape), {a.data(), DType::kF32, shape});
    (differs ? changed : base).read(Box::whole(tensor.name, shape), {b.data(), DType::kF32, shape});
    for (size_t i = 0; i < a.size(); ++i) greatest = std::max(greatest, double{std::abs(a[i] - b[i])});
    if (!differs) {
      EXPECT_EQ(a, b) << tensor.name;
    }
  }
  EXPECT_LT(greatest, 1e-6);  // a few rounding errors in sums of four products, for weights of up to 3
}

TEST_P(AdapterTest, GivesTheSameForAnyBlock) {
  const auto merged = merge_adapter(source_.tensors(), source_.config(), adapter_);
  for (const StoredTensor& tensor : merged->tensors()) {
    const Shape shape = tensor.shape();
    std::vector<float> whole(static_cast<size_t>(shape.elements()));
    merged->read(Box::whole(tensor.name, shape), {whole.data(), DType::kF32, shape});
    Shape at = shape, extent = shape;
    for (int axis = 0; axis < shape.rank; ++axis) {
      at[axis] = shape[axis] / 3;
      extent[axis] = std::max<int64_t>(1, shape[axis] / 2);
    }
    std::vector<float> part(static_cast<size_t>(extent.elements())), want(part.size());
    merged->read({tensor.name, shape, at}, {part.data(), DType::kF32, extent});
    copy_block({whole.data(), DType::kF32, shape}, at, {want.data(), DType::kF32, extent},
               Box::whole({}, extent).offset, extent);
    EXPECT_EQ(part, want) << tensor.name;
  }
}

TEST_P(AdapterTest, PassesThroughByteForByte) {
  export_adapter(adapter_, dir_ / "out", {});
  EXPECT_EQ(read_file(dir_ / "out/adapter_model.safetensors"),
            read_file(convert_golden("lora_" + model_ + "/adapter_model.safetensors")));
  EXPECT_EQ(Json::load(dir_ / "out/adapter_config.json")["lora_alpha"], adapter_.config()["lora_alpha"]);
  EXPECT_NE(
      refusal([&] { export_adapter(adapter_, dir_ / "out", {}); }, ErrorKind::kUsage).find("new folder"),
      std::string::npos);
}

// A copy of an adapter with one setting changed.
class Changed {
 public:
  Changed(const char* key, const Json& value) {
    for (const auto& entry : fs::directory_iterator(convert_golden("lora_gpt2")))
      fs::copy_file(entry.path(), dir_.path() / entry.path().filename());
    Json json = Json::load(dir_ / "adapter_config.json");
    json.set(key, value);
    std::ofstream(dir_ / "adapter_config.json") << json.dump();
  }
  std::string path() const { return dir_.path().string(); }

 private:
  TempDir dir_;
};

TEST(Adapter, RefusesByNameWhatWouldChangeTheResult) {
  struct Case {
    const char* key;
    Json value;
    const char* message;
  };
  for (const auto& [key, value, message] :
       {Case{"peft_type", "IA3", "\"IA3\""}, Case{"peft_type", 5, "\"peft_type\" is 5, wanted a string"},
        Case{"bias", 5, "\"bias\" is 5, wanted a string"}, Case{"use_dora", true, "\"use_dora\" true"},
        Case{"bias", "all", "\"bias\" \"all\""},
        Case{"modules_to_save", Json::Array{"lm_head"}, "modules_to_save"}, Case{"r", 4, "the rank of"},
        Case{"r", 0, "\"r\" is 0, wanted a positive integer"},
        Case{"lora_alpha", "x", "\"lora_alpha\" is \"x\", wanted a number"},
        Case{"rank_pattern", Json::Object{{"h.*.attn", 3}}, "only names of modules"},
        Case{"rank_pattern", "x", "\"rank_pattern\" is \"x\", wanted an object"},
        Case{"alpha_pattern", Json::Array{}, "\"alpha_pattern\" is [], wanted an object"},
        Case{"alpha_pattern", 8, "\"alpha_pattern\" is 8, wanted an object"},
        Case{"use_rslora", 1, "\"use_rslora\" is 1, wanted true or false"},
        Case{"use_rslora", "true", "wanted true or false"}, Case{"lora_alpha", 1e39, "of fp32"}}) {
    const Changed changed(key, value);
    const std::string got = refusal([&] { Adapter adapter(changed.path()); });
    EXPECT_NE(got.find(message), std::string::npos) << got;
  }
}

// peft 0.21, LoraLayer.update_layer: which initialisations assign to the base layer's weight.
TEST(Adapter, RefusesInitialisationsThatChangeTheModel) {
  const std::string convert = "path_initial_model_for_weight_conversion", merge = "merge_and_unload()";
  for (const auto& [value, remedy] : {std::pair<Json, std::string>{"pissa", convert},
                                      {"pissa_niter_16", convert},
                                      {"corda", convert},
                                      {"olora", convert},
                                      {"OLoRA", convert},
                                      {"lora_ga", convert},
                                      {"loftq", merge},
                                      {"of_next_year", merge}}) {
    const Changed changed("init_lora_weights", value);
    const std::string got = refusal([&] { Adapter adapter(changed.path()); });
    EXPECT_NE(got.find("\"init_lora_weights\" "), std::string::npos) << got;
    EXPECT_NE(got.find(value.dump()), std::string::npos) << got;
    EXPECT_NE(got.find(remedy), std::string::npos) << got;
  }
  for (const Json& value :
       {Json(true), Json(false), Json("gaussian"), Json("eva"), Json("orthogonal"), Json("mica")}) {
    const Changed changed("init_lora_weights", value);
    EXPECT_NO_THROW(Adapter(changed.path())) << value.dump();
  }
}

TEST(Adapter, RefusesAnotherModelsAdapter) {
  const ModelSource llama(convert_golden("llama"));
  const Adapter adapter(convert_golden("lora_gpt2"));
  EXPECT_NE(refusal([&] {
              merge_adapter(llama.tensors(), llama.config(), adapter);
            }).find("is not in the LlamaForCausalLM"),
            std::string::npos);
}

TEST(Adapter, PrefixesAreCheckedAndCannotBeMerged) {
  const TempDir dir;
  std::ofstream(dir / "adapter_config.json")
      << R"({"peft_type": "PREFIX_TUNING", "num_virtual_tokens": 2, "num_layers": 2, "prefix_projection": false})";
  const auto put = [&](Shape shape) {
    SafetensorsWriter writer(dir / "adapter_model.safetensors", {{"prompt_embeddings", DType::kF32, shape}});
    const std::vector<float> values(static_cast<size_t>(shape.elements()), 0.5F);
    writer.write("prompt_embeddings", values.data(), values.size() * sizeof(float));
    writer.finish();
  };
  put({3, 80});
  EXPECT_NE(refusal([&] { Adapter adapter(dir.path().string()); }).find("wanted 2 virtual tokens"),
            std::string::npos);
  put({2, 80});
  const Adapter prefix(dir.path().string());
  const ModelSource gpt2(convert_golden("gpt2"));
  EXPECT_NE(refusal([&] { merge_adapter(gpt2.tensors(), gpt2.config(), prefix); }, ErrorKind::kUsage)
                .find("PREFIX_TUNING"),
            std::string::npos);
  export_adapter(prefix, dir / "out", DType::kBf16);
  EXPECT_EQ(Adapter(dir / "out").tensors().at("prompt_embeddings").dtype, DType::kBf16);
}

}  // namespace
}  // namespace megalith
