// Reads checkpoints that tools/golden/make_megatron.py wrote. value_at() computes the weights in them.
#include "libcore/convert/sources/megatron_source.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/convert/sources/megatron_args.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/torch_bytes.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::TempDir;

std::string golden(const std::string& name) {
  return test::test_data("convert/goldens/megatron/" + name);
}

// Element i of a parameter, computed as value() in tools/golden/make_megatron.py does.
float value_at(const std::string& name, int64_t i) {
  int64_t start = 0;
  for (const char c : name) start += c;
  return static_cast<float>((i * 7 + start) % 181 - 90);
}

const SourceOptions kOptions{.vocab_size = 6, .heads = 4};

// Compares a block of a tensor with value_at(), element by element.
void expect_block(const TensorFile& file, const Box& box, const Shape& extent) {
  std::vector<float> values(static_cast<size_t>(extent.elements()));
  file.read(box, {values.data(), DType::kF32, extent});
  for (int64_t i = 0; i < extent.elements(); ++i) {
    int64_t rest = i, place = 0, step = 1;
    for (int axis = extent.rank - 1; axis >= 0; --axis) {
      place += (box.offset[axis] + rest % extent[axis]) * step;
      rest /= extent[axis];
      step *= box.global[axis];
    }
    ASSERT_EQ(values[static_cast<size_t>(i)], value_at(box.name, place))
        << box.name << " at " << i << " of " << extent;
  }
}

// Compares the whole tensor with value_at(), and for each pair of axes a block that covers only a part of
// both.
void expect_values(const TensorFile& file, const std::string& name, const Shape& shape) {
  expect_block(file, Box::whole(name, shape), shape);
  for (int a = 0; a < shape.rank; ++a)
    for (int b = 0; b < shape.rank; ++b) {
      Box box = Box::whole(name, shape);
      Shape extent = shape;
      for (const int axis : {a, b})
        if (shape[axis] > 1) {
          box.offset[axis] = 1;
          extent[axis] = (shape[axis] + 1) / 2;
        }
      expect_block(file, box, extent);
    }
}

class MegatronTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Forms, MegatronTest,
                         testing::Values("v0", "v0_stream", "v1", "v2_pp", "virtual", "te_legacy",
                                         "mcore_local", "mcore_te", "interleaved", "qwen2", "mistral",
                                         "llama3", "qwen3", "qwen3_dist", "dist", "dist_layers", "hf_bin"),
                         [](const auto& form) { return std::string(form.param); });

TEST_P(MegatronTest, GivesEveryParameterWhereItBelongs) {
  const ModelSource source(golden(GetParam()), kOptions);
  EXPECT_EQ(source.config().vocab_size, 6);
  size_t compared = 0;
  for (const RenamedTensor& tensor : renamed_tensors(family_of(source.config()).names, source.config())) {
    expect_values(source.tensors(), tensor.ours, tensor.shape);
    ++compared;
  }
  EXPECT_EQ(compared, source.tensors().tensors().size());
}

TEST(Megatron, ReadsTheConfigurationFromTheArgs) {
  const ModelConfig gpt2 = ModelSource(golden("virtual"), kOptions).config();
  EXPECT_EQ(gpt2.layers, 4);
  EXPECT_EQ(gpt2.ffn_hidden, 12);
  EXPECT_EQ(gpt2.max_positions, 4);
  EXPECT_EQ(gpt2.activation(), ActivationFunction::kGeluTanh);
  const ModelConfig llama = ModelSource(golden("mcore_te"), kOptions).config();
  EXPECT_EQ(llama.kv_heads(), 2);
  EXPECT_EQ(llama.rotary_base, 5000);
  EXPECT_TRUE(llama.untied_head && llama.swiglu && !llama.linear_bias);
  EXPECT_EQ(ModelSource(golden("mistral"), kOptions).config().sliding_window, 9);
  const ModelConfig llama3 = ModelSource(golden("llama3"), kOptions).config();
  EXPECT_TRUE(llama3.rope_scaling);
  EXPECT_EQ(llama3.rope_factor, 8);
  EXPECT_TRUE(ModelSource(golden("qwen2"), kOptions).config().has_qkv_bias());
  EXPECT_FALSE(llama.qk_layernorm);
  for (const char* form : {"qwen3", "qwen3_dist"})
    EXPECT_TRUE(ModelSource(golden(form), kOptions).config().qk_layernorm) << form;
}

TEST(Megatron, KeepsTypeAndIteration) {
  EXPECT_EQ(ModelSource(golden("v0"), kOptions).dtype(), DType::kF16);
  EXPECT_EQ(ModelSource(golden("mcore_te"), kOptions).dtype(), DType::kBf16);
  EXPECT_EQ(ModelSource(golden("v1"), kOptions).iteration(), 5);
  EXPECT_EQ(ModelSource(golden("dist"), kOptions).iteration(), 5);
}

// Each of these paths must lead to the checkpoint.
TEST(Megatron, IsFoundByItsRootItsIterationARankOrAFile) {
  for (const char* path : {"", "/", "/iter_0000005", "/iter_0000005/mp_rank_00", "/iter_0000005/mp_rank_01/",
                           "/iter_0000005/mp_rank_01/model_optim_rng.pt"})
    EXPECT_EQ(ModelSource(golden("v0") + path, kOptions).tensors().tensors().size(), 28U) << path;
  const TempDir dir;
  fs::copy_file(golden("v1/iter_0000005/mp_rank_00/model_optim_rng.pt"), dir / "model_optim_rng.pt");
  EXPECT_EQ(ModelSource(dir / "model_optim_rng.pt", kOptions).config().layers, 1);
  EXPECT_EQ(ModelSource(dir.path().string(), kOptions).config().layers, 1);
}

std::string refusal(const std::string& path, const SourceOptions& options = kOptions,
                    ErrorKind kind = ErrorKind::kData) {
  try {
    const ModelSource source(path, options);
    for (const StoredTensor& tensor : source.tensors().tensors()) {
      std::vector<float> values(static_cast<size_t>(tensor.shape().elements()));
      source.tensors().read(Box::whole(tensor.name, tensor.shape()),
                            {values.data(), DType::kF32, tensor.shape()});
    }
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return {};
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A copy of a golden folder, to be damaged.
class Spoiled {
 public:
  explicit Spoiled(const std::string& name) { fs::copy(golden(name), path(), fs::copy_options::recursive); }
  std::string path() const { return dir_ / "checkpoint"; }
  std::string operator/(const std::string& name) const { return path() + "/iter_0000005/" + name; }
  void replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::string bytes = read_file(*this / file);
    const size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, from.size(), to);
    write_file(*this / file, bytes);
  }
  std::string refused(bool crc = false) const {
    return refusal(path(), {.vocab_size = 6, .heads = 4, .crc = crc ? CrcCheck::kYes : CrcCheck::kNo});
  }

 private:
  TempDir dir_;
};

TEST(Megatron, WantsTheTrueVocabulary) {
  EXPECT_TRUE(says(refusal(golden("v1"), {}), "8 rows, padding included"));
  EXPECT_TRUE(says(refusal(golden("v1"), {}), "--vocab-size"));
  EXPECT_TRUE(says(refusal(golden("dist"), {.vocab_size = 9}), "8 rows, fewer than the vocabulary of 9"));
}

TEST(Megatron, WantsTheHeadsOfAReleaseWithoutArgs) {
  EXPECT_TRUE(says(refusal(golden("v0_stream"), {.vocab_size = 6}), "give --num-attention-heads"));
  EXPECT_TRUE(says(refusal(golden("v0_stream"), {.vocab_size = 6, .heads = 3}), "does not divide"));
}

TEST(Megatron, WantsEveryRank) {
  const Spoiled a("v0");
  fs::remove_all(a / "mp_rank_00");
  EXPECT_TRUE(says(a.refused(), "holds 1 mp_rank folders"));
  const Spoiled b("v0");
  fs::remove_all(b / "mp_rank_01");
  EXPECT_TRUE(says(b.refused(), "tensor_model_parallel_size 2, but 1 tensor-parallel rank is there"));
  const Spoiled c("v0");
  fs::remove(c / "mp_rank_01/model_optim_rng.pt");
  EXPECT_TRUE(says(refusal(c.path(), kOptions, ErrorKind::kNoInput), "holds neither model_optim_rng.pt"));
  const Spoiled d("v0");
  fs::rename(d / "mp_rank_01", d / "mp_rank_01_000_001");
  EXPECT_TRUE(says(d.refused(), "experts"));
}

TEST(Megatron, RefusesCopiesThatDiffer) {
  const Spoiled tied("v2_pp");  // to damage the last stage's copy of the embedding
  std::string bytes = read_file(tied / "mp_rank_00_001/model_optim_rng.pt");
  const uint16_t first = 0xC1A0;  // the bits of -20 in bf16
  std::string row;
  for (int64_t i = 0; i < 4; ++i) {
    const float value = value_at("embedding.word_embeddings.weight", i);
    uint32_t word = 0;
    std::memcpy(&word, &value, sizeof word);
    row += static_cast<char>(word >> 16);
    row += static_cast<char>(word >> 24);
  }
  const size_t at = bytes.rfind(row);  // the copy is the last one in the file
  ASSERT_NE(at, std::string::npos);
  std::memcpy(bytes.data() + at, &first, sizeof first);
  write_file(tied / "mp_rank_00_001/model_optim_rng.pt", bytes);
  EXPECT_TRUE(says(tied.refused(), "its copy of tensor \"embedding.word_embeddings.weight\" differs"))
      << tied.refused();
  EXPECT_TRUE(says(tied.refused(true), "do not match their CRC"));
}

// Changes a number in the args: in a pickle, a small number is the opcode K followed by a byte.
TEST(Megatron, RefusesRanksWhoseArgsDisagree) {
  for (const char* const key : {"num_attention_heads", "num_layers", "hidden_size", "max_position_embeddings",
                                "tensor_model_parallel_size"}) {
    const Spoiled a("v0");
    const std::string path = a / "mp_rank_01/model_optim_rng.pt";
    std::string bytes = read_file(path);
    const size_t at = bytes.find(key);
    ASSERT_NE(at, std::string::npos) << key;
    const size_t number = bytes.find('K', at + std::strlen(key));
    bytes[number + 1] = static_cast<char>(2 * bytes[number + 1]);
    write_file(path, bytes);
    EXPECT_FALSE(a.refused().empty()) << key;
    EXPECT_TRUE(says(a.refused(), "mp_rank_01/model_optim_rng.pt: disagrees with") ||
                says(a.refused(), "its args say"))
        << a.refused();
  }
}

TEST(Megatron, RefusesStagesWhoseFoldersWereExchanged) {
  const Spoiled a("v2_pp");
  fs::rename(a / "mp_rank_00_000", a / "mp_rank_00_009");
  fs::rename(a / "mp_rank_00_001", a / "mp_rank_00_000");
  fs::rename(a / "mp_rank_00_009", a / "mp_rank_00_001");
  EXPECT_TRUE(says(a.refused(), "its folder has another stage's name") ||
              says(a.refused(), "belongs to the first stage"))
      << a.refused();
}

TEST(Megatron, RefusesKeysThatHaveNoPlace) {
  const Spoiled a("qwen2");
  a.replace("mp_rank_00/model_optim_rng.pt", "mlp.linear_fc2.weight", "mlp.router_fc2.weight");
  EXPECT_TRUE(
      says(a.refused(), "1 keys have no place in a model here: \"decoder.layers.0.mlp.router_fc2.weight\""));
  const Spoiled b("qwen2");
  b.replace("mp_rank_00/model_optim_rng.pt", "rotary_pos_emb.inv_freq", "rotary_pos_emb.inv_frex");
  EXPECT_TRUE(says(b.refused(), "rotary_pos_emb.inv_frex"));
  const Spoiled c("dist");
  c.replace(".metadata", "decoder.final_layernorm.weight", "decoder.final_layernxxm.weight");
  EXPECT_FALSE(c.refused().empty());
}

TEST(Megatron, RefusesSettingsThatCannotBeHad) {
  const Json plain = Json::Object{
      {"num_layers", 1}, {"hidden_size", 8}, {"num_attention_heads", 2}, {"max_position_embeddings", 16}};
  EXPECT_EQ(megatron_config(plain, "x").ffn_hidden, 32);
  struct Case {
    const char* key;
    Json value;
    const char* message;
  };
  for (const auto& [key, value, message] :
       {Case{"num_experts", 8, "--num-experts 8"}, Case{"qk_l2_norm", true, "--qk-l2-norm"},
        Case{"multi_latent_attention", true, "--multi-latent-attention"},
        Case{"position_embedding_type", "yarn", "--position-embedding-type yarn"},
        Case{"normalization", "GroupNorm", "\"GroupNorm\" is not supported"},
        Case{"glu_activation", "geglu", "--glu-activation"}, Case{"window_size", "x", "wanted two integers"},
        Case{"no_rope_freq", Json::Array{2}, "\"no_rope_freq\" is [2], wanted a number up to"},
        Case{"num_layers", 0, "wanted a positive integer"},
        Case{"hidden_size", int64_t{1} << 40, "positive integer"},
        Case{"rotary_base", "x", "wanted a number"}}) {
    Json args = plain;
    args.set(key, value);
    try {
      megatron_config(args, "x");
      ADD_FAILURE() << key;
    } catch (const Error& error) {
      EXPECT_TRUE(says(error.what(), message)) << error.what();
    }
  }
  Json squared = plain;
  squared.set("squared_relu", true);
  EXPECT_EQ(megatron_config(squared, "x").activation(), ActivationFunction::kSquaredRelu);
  Json layers = plain;
  layers.set("num_layers", 4);
  layers.set("no_rope_freq", 2);
  EXPECT_EQ(megatron_config(layers, "x").no_rope_freq, 2);
  layers.set("no_rope_freq", Json::Array{0, 0, 0, 1});  // megatron-core: 1 means without rotation
  EXPECT_EQ(megatron_config(layers, "x").no_rope_freq, 4);
  layers.set("no_rope_freq", Json::Array{0, 1, 0, 0});
  EXPECT_THROW(megatron_config(layers, "x"), Error);
  Json windows = plain;
  windows.set("window_size", Json::Array{-1, 0});
  EXPECT_EQ(megatron_config(windows, "x").sliding_window, 0);
}

// megatron-core 0.16.1, core/transformer/utils.py: is_layer_window_attention.
TEST(Megatron, ReadsWhichLayersHaveAWindow) {
  Json args = Json::Object{
      {"num_layers", 4}, {"hidden_size", 8}, {"num_attention_heads", 2}, {"max_position_embeddings", 16}};
  args.set("window_size", Json::Array{6, 0});
  const auto read = [&](const Json& skips) {
    args.set("window_attn_skip_freq", skips);
    const ModelConfig c = megatron_config(args, "x");
    std::string text;
    for (int layer = 0; layer < c.layers; ++layer) text += c.window_of(layer) == 7 ? 'w' : '-';
    return text;
  };
  EXPECT_EQ(read(Json()), "wwww");
  EXPECT_EQ(read(2), "w-w-");
  EXPECT_EQ(read(1), "----");
  EXPECT_EQ(read(5), "wwww");
  EXPECT_FALSE(megatron_config(args, "x").has_mixed_windows());  // so that Mistral can express it
  EXPECT_EQ(read(Json::Array{0, 0, 1, 1}), "--ww");
  EXPECT_EQ(read(Json::Array{1, 1, 0, 1}), "ww-w");
  EXPECT_EQ(read(Json::Array{0, 0, 0, 0}), "----");
  EXPECT_THROW(read(Json::Array{0, 1, 0, 0}), Error);
  EXPECT_EQ(read(Json::Array{false, false, true, true}), "--ww");
  EXPECT_THROW(read(Json::Array{0, 1}), Error);
  EXPECT_THROW(read(Json::Array{"a", "a", "a", "a"}), Error);
}

/// Where a pickle has the value of a key that is a number or a flag, and its size; 0: there is none.
struct ValueAt {
  size_t at = 0, size = 0;
};
ValueAt value_after(const std::string& bytes, const std::string& key) {
  const size_t at = test::first_value(bytes, key);
  if (at == std::string::npos) return {};
  const std::map<char, size_t> sizes{{'K', 2}, {'M', 3}, {'J', 5}, {'G', 9}, {'\x88', 1}, {'\x89', 1}};
  const auto size = sizes.find(bytes[at]);
  return size == sizes.end() ? ValueAt{} : ValueAt{at, size->second};
}

// Replaces each setting by a tuple, which is neither a number nor a flag. It must not count as absent, since
// the default would then be taken without a word.
TEST(Megatron, TakesNoSettingOfAnotherKindForAnAbsentOne) {
  int tried = 0;
  for (const auto& [name, file] : {std::pair{"llama3", "mp_rank_00/model_optim_rng.pt"},
                                   {"interleaved", "mp_rank_00/model_optim_rng.pt"},
                                   {"v1", "mp_rank_00/model_optim_rng.pt"},
                                   {"dist", "common.pt"}})
    for (const char* key : {"num_layers",
                            "hidden_size",
                            "ffn_hidden_size",
                            "num_attention_heads",
                            "kv_channels",
                            "max_position_embeddings",
                            "seq_length",
                            "rotary_base",
                            "swiglu",
                            "add_bias_linear",
                            "bias_gelu_fusion",
                            "group_query_attention",
                            "num_query_groups",
                            "norm_epsilon",
                            "squared_relu",
                            "untie_embeddings_and_output_weights",
                            "use_rope_scaling",
                            "rope_scaling_factor",
                            "rotary_interleaved",
                            "iteration",
                            "checkpoint_version"}) {
      const Spoiled a(name);
      std::string bytes = read_file(a / file);
      const auto [at, size] = value_after(bytes, key);
      // The file "common.pt" has an iteration only among the arguments, where nothing reads it.
      const bool unused = (key == std::string("num_query_groups") && name == std::string("v1")) ||
                          (key == std::string("iteration") && name == std::string("dist"));
      if (size == 0 || unused) continue;
      bytes.replace(at, size, size == 1 ? ")" : "(" + std::string(size - 2, 'N') + "t");
      write_file(a / file, bytes);
      ++tried;
      EXPECT_TRUE(says(a.refused(), key)) << name << ' ' << key << ": " << a.refused();
    }
  EXPECT_GT(tried, 60);
}

TEST(Megatron, TakesNoObjectForAnAbsentSetting) {
  const std::vector<std::string> values{"\x8a\x09" + std::string(8, '\0') + '\1',  // 2^64
                                        "}",
                                        ")",
                                        "]",
                                        "C\1x",
                                        "\x8f"};
  for (const std::string& value : values)
    for (const std::string key : {"rotary_base", "num_layers", "swiglu", "normalization"}) {
      const std::string pickle = test::pickled_dict({{key, value}});
      const PickleTree tree = parse_pickle(pickle, "x");
      const Json read = args_json(tree, tree.root());
      Json args = Json::Object{
          {"num_layers", 1}, {"hidden_size", 8}, {"num_attention_heads", 2}, {"max_position_embeddings", 16}};
      for (const auto& [name, json] : read.as_object()) args.set(name, json);
      try {
        megatron_config(args, "x");
        ADD_FAILURE() << key << ": an object was taken";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kData);
        EXPECT_TRUE(says(error.what(), key)) << error.what();
      }
    }
}

TEST(Megatron, RefusesAVersionThatThereIsNot) {
  for (const std::string& number :
       {std::string("G\x7f\xf8\0\0\0\0\0\0", 9), std::string("G\xbf\xf0\0\0\0\0\0\0", 9)}) {
    const Spoiled a("v1");
    std::string bytes = read_file(a / "mp_rank_00/model_optim_rng.pt");
    const auto [at, size] = value_after(bytes, "checkpoint_version");
    ASSERT_EQ(size, 9U);
    bytes.replace(at, size, number);
    write_file(a / "mp_rank_00/model_optim_rng.pt", bytes);
    EXPECT_TRUE(says(a.refused(), "checkpoint_version")) << a.refused();
  }
}

TEST(Megatron, RefusesDistributedCheckpointsThatAreNotSound) {
  const Spoiled a("dist");
  a.replace(".metadata", "__0_0.distcp", "/_0_0.distcp");
  EXPECT_TRUE(says(a.refused(), "the plain name of a file"));
  const Spoiled b("dist");
  fs::resize_file(b / "__0_0.distcp", 1000);
  EXPECT_TRUE(says(b.refused(), "probably truncated"));
  const Spoiled c("dist");
  std::ofstream(c / "metadata.json") << R"({"sharded_backend": "zarr", "sharded_backend_version": 1})";
  EXPECT_TRUE(says(c.refused(), "\"zarr\"; torch_dist can be read"));
  for (const auto& [from, to] : {std::pair{"torch\nfloat32", "torch\nfloat64"}, {"float32", "float64"}}) {
    const Spoiled type("dist");
    const std::string path = type / ".metadata";
    std::string bytes = read_file(path);
    const size_t at = bytes.find(from);
    if (at == std::string::npos) continue;
    write_file(path, bytes.replace(at, std::strlen(from), to));
    EXPECT_TRUE(says(type.refused(), "is not the tensor that .metadata describes")) << type.refused();
  }
  const Spoiled d("dist");
  fs::remove(d / "common.pt");
  EXPECT_TRUE(says(refusal(d.path(), kOptions, ErrorKind::kNoInput), "common.pt"));
  const Spoiled e("dist");
  std::string bytes = read_file(e / "__0_0.distcp");
  const size_t at = bytes.find(std::string(8, '\0') + std::string("\x9d\xc2", 2));
  bytes[at == std::string::npos ? bytes.size() / 2 : at] ^= 1;
  write_file(e / "__0_0.distcp", bytes);
  EXPECT_FALSE(e.refused(true).empty());
}

}  // namespace
}  // namespace megalith
