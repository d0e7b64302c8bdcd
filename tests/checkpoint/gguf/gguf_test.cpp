#include "libcore/checkpoint/gguf/gguf.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::TempDir;
const Shape kShape{3, 64};

std::string golden() {
  return test::test_data("checkpoint/goldens/small.gguf");
}

// numpy.linspace(-2, 3, 192) in fp32, which are the values of the golden file.
std::vector<float> values() {
  std::vector<float> out(192);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(-2.0 + static_cast<double>(i) * (5.0 / 191.0));
  out.back() = 3;
  return out;
}

GgufMetadata metadata() {
  GgufMetadata m;
  m.text("general.architecture", "gpt2");
  m.u32("gpt2.block_count", 2);
  m.f32("gpt2.attention.layer_norm_epsilon", 1e-5);
  m.boolean("tokenizer.ggml.add_bos_token", true);
  m.texts("tokenizer.ggml.tokens", std::vector<std::string>{"a", "bc", "é"});
  m.floats("tokenizer.ggml.scores", std::vector<float>{-1.0F, 0.5F, 2.0F});
  m.integers("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1, 3});
  return m;
}

// The test quantizes the Q8_0 tensor itself and copies the other tensors from the golden file. All bytes must
// equal those that the gguf package wrote.
TEST(Gguf, WritesTheBytesOfTheGgufPackage) {
  const GgufFile file(golden());
  const GgufLayout layout(metadata(), {{"plain", GgufType::kF32, kShape},
                                       {"half", GgufType::kF16, kShape},
                                       {"brain", GgufType::kBf16, kShape},
                                       {"eight", GgufType::kQ8, kShape}});
  std::string ours = layout.head;
  ours.resize(layout.size);
  const auto put = [&](size_t tensor, const void* data, size_t bytes) {
    std::memcpy(ours.data() + layout.offsets[tensor], data, bytes);
  };
  const std::vector<float> plain = values();
  put(0, plain.data(), plain.size() * sizeof(float));
  for (const auto& [tensor, name, dtype] :
       {std::tuple{size_t{1}, "half", DType::kF16}, {2, "brain", DType::kBf16}}) {
    std::vector<uint16_t> stored(192);
    file.read(Box::whole(name, kShape), {stored.data(), dtype, kShape});
    put(tensor, stored.data(), stored.size() * sizeof(uint16_t));
  }
  std::vector<std::byte> blocks(gguf_bytes(GgufType::kQ8, 192));
  quantize_q8_0(plain.data(), 192, blocks.data());
  put(3, blocks.data(), blocks.size());
  EXPECT_EQ(ours, read_file(golden()));
}

TEST(Gguf, ReadsEveryTypeAndBlock) {
  const GgufFile file(golden());
  EXPECT_EQ(file.metadata()["tokenizer.ggml.tokens"].as_array()[2].as_string(), "é");
  EXPECT_EQ(file.metadata()["gpt2.block_count"].as_int(), 2);
  const std::vector<float> want = values();
  for (const auto& [name, error] :
       {std::pair{"plain", 1e-6}, {"half", 2e-3}, {"brain", 1e-2}, {"eight", 1.3e-2}}) {
    EXPECT_EQ(file.at(name).shape(), kShape) << name;
    std::vector<float> got(2 * 5);
    file.read({name, kShape, {1, 30}}, {got.data(), DType::kF32, {2, 5}});
    for (size_t row = 0; row < 2; ++row)
      for (size_t column = 0; column < 5; ++column)
        EXPECT_NEAR(got[row * 5 + column], want[(row + 1) * 64 + 30 + column], error) << name;
  }
}

// Found by libFuzzer: for a tensor of no rows and 2^50 columns, the reader allocated a row.
TEST(Gguf, ReadsATensorWithoutRowsWhateverItsColumns) {
  const TempDir dir;
  const Shape shape{0, int64_t{1} << 50};
  write_file(dir / "none.gguf", GgufLayout({}, {{"none", GgufType::kQ8, shape}}).head);
  const GgufFile file(dir / "none.gguf");
  ASSERT_EQ(file.at("none").shape(), shape);
  float nothing = 1;
  file.read(Box::whole("none", shape), {&nothing, DType::kF32, shape});
  EXPECT_EQ(nothing, 1);
}

TEST(Gguf, RefusesEveryTruncation) {
  const TempDir dir;
  const std::string whole = read_file(golden());
  for (size_t bytes = 0; bytes < whole.size(); bytes += bytes < 600 ? 1 : 97) {
    write_file(dir / "cut.gguf", whole.substr(0, bytes));
    EXPECT_THROW(GgufFile(dir / "cut.gguf"), Error) << bytes;
  }
}

TEST(Gguf, DoesNotQuantizeWhatIsNotFinite) {
  std::vector<float> values(32, 1);
  std::vector<std::byte> out(kQ8BlockBytes);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    values[7] = bad;
    EXPECT_FALSE(quantize_q8_0(values.data(), 32, out.data()));
  }
  values.assign(32, 0);
  EXPECT_TRUE(quantize_q8_0(values.data(), 32, out.data()));
  EXPECT_EQ(out, std::vector<std::byte>(kQ8BlockBytes));
  // The block's scale is an fp16 number, which is at most 65504.
  values[7] = -127.F * 65504;
  EXPECT_TRUE(quantize_q8_0(values.data(), 32, out.data()));
  EXPECT_EQ(out[0], std::byte{0xFF});
  EXPECT_EQ(out[1], std::byte{0x7B});
  EXPECT_EQ(out[2 + 7], std::byte{0x81});
  values[7] = 1e7F;
  EXPECT_FALSE(quantize_q8_0(values.data(), 32, out.data()));
}

}  // namespace
}  // namespace megalith
