// Goldens: tools/golden/make_rope_goldens.py (transformers 5.24.0).
#include "libcore/model/rotary/rotary.h"

#include <string>

#include <gtest/gtest.h>

#include "libcore/convert/sources/hf_config.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

// transformers computes in fp32, whose logarithms and powers may be off by a few units in the last place.
constexpr double kFp32Error = 1e-6;

TEST(Rotation, IsThatOfTransformers) {
  const Json goldens = Json::load(test::test_data("model/goldens/rope.json"));
  ASSERT_EQ(goldens["cases"].as_array().size(), 19U);
  for (const Json& golden : goldens["cases"].as_array()) {
    const std::string& name = golden["name"].as_string();
    ModelConfig config = parse_hf_config(golden["config"], name).config;
    config.seq_length = static_cast<int>(golden["length"].as_int());
    const Rotation rotation = rotation_of(config);
    const Json::Array& want = golden["frequencies"].as_array();
    ASSERT_EQ(rotation.frequencies.size(), want.size()) << name;
    for (size_t pair = 0; pair < want.size(); ++pair)
      EXPECT_NEAR(rotation.frequencies[pair] / want[pair].as_double(), 1, kFp32Error)
          << name << ", pair " << pair;
    EXPECT_NEAR(rotation.magnitude, golden["magnitude"].as_double(), kFp32Error) << name;
  }
}

// The example of Megatron's --rotary-percent: half of a head of 8 channels turns as a head of 4 would.
TEST(Rotation, OfAPartTurnsAsASmallerHead) {
  ModelConfig half, small;
  half.position = small.position = PositionEmbedding::kRope;
  half.kv_channels = 8;
  half.rotary_percent = 0.5;
  small.kv_channels = 4;
  EXPECT_EQ(rotation_of(half).frequencies, rotation_of(small).frequencies);
  EXPECT_EQ(rotation_of(half).frequencies, (std::vector<float>{1, 0.01F}));
  EXPECT_EQ(rotation_of(half).magnitude, 1);
}

}  // namespace
}  // namespace megalith
