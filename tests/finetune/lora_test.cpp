#include "libcore/finetune/lora.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

using Names = std::vector<std::string>;
const std::string kFolder = MEGALITH_SOURCE_DIR "/tests/finetune/goldens";

ModelConfig config_of(const std::string& family) {
  return ModelSource(kFolder + "/" + family).config();
}

TEST(Lora, KnowsTheLinearLayersByTheirHuggingFaceNames) {
  EXPECT_EQ(linear_modules(config_of("llama")),
            (Names{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}));
  EXPECT_EQ(linear_modules(config_of("gpt2")), (Names{"c_attn", "attn.c_proj", "c_fc", "mlp.c_proj"}));
}

TEST(Lora, AModuleThatIsNotInTheModelIsNamed) {
  try {
    lora_plan(config_of("llama"), {.modules = {"q_proj", "c_attn"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_EQ(
        std::string(error.what()),
        "--target-modules \"c_attn\": the model has no such linear layer; it has q_proj, k_proj, v_proj, "
        "o_proj, gate_proj, up_proj, down_proj, or all-linear");
  }
}

TEST(Lora, PlansSlotsOfTheFusedLayers) {
  // 4 heads in 2 groups, so each group has 2 queries, a key and a value.
  const TuningPlan plan =
      lora_plan(config_of("llama"), {.rank = 4, .alpha = 8, .modules = {"v_proj", "up_proj"}});
  ASSERT_EQ(plan.targets.size(), 2U);
  EXPECT_EQ(plan.targets[0].layer, "self_attention.linear_qkv");
  EXPECT_EQ(plan.targets[0].first, 3);
  EXPECT_EQ(plan.targets[0].slots, 1);
  EXPECT_EQ(plan.targets[1].layer, "mlp.linear_fc1");
  EXPECT_EQ(plan.targets[1].first, 1);
  EXPECT_DOUBLE_EQ(plan.scale, 2);
  EXPECT_TRUE(plan.frozen);
  EXPECT_DOUBLE_EQ(
      lora_plan(config_of("llama"), {.rank = 4, .alpha = 8, .rslora = true, .modules = {"q_proj"}}).scale, 4);
}

/// The values of the tensor with this name.
std::vector<float> read(const TensorFile& file, const std::string& name) {
  const StoredTensor& tensor = file.at(name);
  std::vector<float> values(static_cast<size_t>(tensor.shape().elements()));
  file.read(Box::whole(name, tensor.shape()), View{values.data(), DType::kF32, tensor.shape()});
  return values;
}

// An adapter that peft wrote is unchanged after it is read as our parameters and written again.
TEST(Lora, APeftFolderGoesThroughUnchanged) {
  for (const char* name : {"gpt2-lora", "gpt2-rslora", "llama-lora", "llama-rslora", "qwen2-lora"}) {
    const ModelConfig config = config_of(std::string(name).substr(0, std::string(name).find('-')));
    const Adapter theirs(kFolder + "/" + name);
    const LoraSettings settings = settings_of(theirs, config);
    const TempDir dir;
    const std::string folder = (dir.path() / "out").string();
    write_adapter(*adapter_params(theirs, config, lora_plan(config, settings)), config, settings,
                  {folder, "base"});
    const Adapter ours(folder);
    ASSERT_EQ(ours.tensors().tensors().size(), theirs.tensors().tensors().size()) << name;
    for (const StoredTensor& tensor : theirs.tensors().tensors())
      EXPECT_EQ(read(ours.tensors(), tensor.name), read(theirs.tensors(), tensor.name)) << tensor.name;
    for (const char* key : {"r", "use_rslora", "fan_in_fan_out", "bias", "task_type", "peft_type"})
      EXPECT_EQ(ours.config()[key], theirs.config()[key]) << name << " " << key;
    EXPECT_DOUBLE_EQ(ours.config()["lora_alpha"].as_double(), theirs.config()["lora_alpha"].as_double());
  }
}

TEST(Lora, AnAdapterOfOtherSettingsIsRefused) {
  const ModelConfig config = config_of("llama");
  const Adapter adapter(kFolder + "/llama-rslora");
  LoraSettings settings = settings_of(adapter, config);
  settings.modules.push_back("o_proj");
  EXPECT_THROW(adapter_params(adapter, config, lora_plan(config, settings)), Error);
  settings = settings_of(adapter, config);
  settings.alpha *= 2;
  EXPECT_THROW(adapter_params(adapter, config, lora_plan(config, settings)), Error);
}

}  // namespace
}  // namespace megalith::test
