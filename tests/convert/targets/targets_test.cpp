#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/families/family.h"
#include "libcore/checkpoint/gguf/gguf.h"
#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/checkpoint/torch/torch_file.h"
#include "libcore/convert/inspect.h"
#include "libcore/convert/targets/gguf.h"
#include "libcore/convert/targets/hf.h"
#include "libcore/convert/targets/megalith.h"
#include "libcore/convert/targets/megatron.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/goldens.h"

namespace megalith {
namespace {

using test::convert_golden;
using test::TempDir;
namespace fs = std::filesystem;

std::vector<float> values_of(const TensorFile& file, const std::string& name) {
  const Shape shape = file.at(name).shape();
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  file.read(Box::whole(name, shape), {values.data(), DType::kF32, shape});
  return values;
}

// A model and a layout. gpt2 has 5 heads, llama has 2 groups and 3 layers, so different layouts can divide
// them.
struct Cut {
  const char* model;
  int tensor, pipeline;
  bool engine;
};

class MegatronTarget : public testing::TestWithParam<Cut> {};
INSTANTIATE_TEST_SUITE_P(Cuts, MegatronTarget,
                         testing::Values(Cut{"gpt2", 1, 1, true}, Cut{"gpt2", 1, 2, true},
                                         Cut{"gpt2", 1, 2, false}, Cut{"llama", 1, 1, false},
                                         Cut{"llama", 2, 1, true}, Cut{"llama", 2, 3, true},
                                         Cut{"llama", 1, 3, false}),
                         [](const auto& test) {
                           const Cut& cut = test.param;
                           return std::string(cut.model) + "Tp" + std::to_string(cut.tensor) + "Pp" +
                                  std::to_string(cut.pipeline) + (cut.engine ? "Engine" : "Local");
                         });

TEST_P(MegatronTarget, GivesBackEveryByteOfTheModelThatItWasMadeOf) {
  const TempDir dir;
  const ModelSource theirs(convert_golden(GetParam().model));
  export_megatron(
      {.source = theirs, .tokenizer_folder = theirs.tokenizer_folder()}, dir / "megatron",
      {.tensor = GetParam().tensor, .pipeline = GetParam().pipeline, .engine = GetParam().engine});
  const ModelSource megatron(dir / "megatron", {.vocab_size = theirs.config().vocab_size});
  export_hf({.source = megatron, .tokenizer_folder = megatron.tokenizer_folder()}, dir / "back");
  EXPECT_EQ(read_file(dir / "back/model.safetensors"),
            read_file(convert_golden(std::string(GetParam().model) + "/model.safetensors")));
}

// Megatron gives its embedding padded_vocab_size rows for any number of ranks, and refuses a file with
// another number of rows.
TEST(MegatronTarget, PadsTheVocabularyWithItsLastRowOnOneRankToo) {
  const TempDir dir;
  const ModelSource source(convert_golden("llama"));  // this model has an untied head
  const int64_t rows = source.config().vocab_size, hidden = source.config().hidden;
  const int64_t padded = (rows + 127) / 128 * 128;
  ASSERT_LT(rows, padded);
  export_megatron({.source = source}, dir / "megatron", {});
  const TorchFile file = open_torch(dir / "megatron/release/mp_rank_00/model_optim_rng.pt");
  const TorchTensorFile tensors(file);
  for (const char* name : {"model.embedding.word_embeddings.weight", "model.output_layer.weight"}) {
    ASSERT_EQ(tensors.at(name).shape(), (Shape{padded, hidden})) << name;
    std::vector<float> last(static_cast<size_t>(hidden)), extra = last;
    tensors.read({name, {padded, hidden}, {rows - 1, 0}}, {last.data(), DType::kF32, {1, hidden}});
    for (int64_t row = rows; row < padded; ++row) {
      tensors.read({name, {padded, hidden}, {row, 0}}, {extra.data(), DType::kF32, {1, hidden}});
      ASSERT_EQ(extra, last) << name << " row " << row;
    }
  }
}

// The files of the ranks of one stage have equal names and shapes. Only the recorded rank tells them apart.
TEST(MegatronTarget, SaysWhichRankWroteAFileSoThatExchangedOnesAreRefused) {
  const TempDir dir;
  export_megatron({.source = ModelSource(convert_golden("llama"))}, dir / "megatron",
                  {.tensor = 2, .pipeline = 3});
  const fs::path folder = dir / "megatron/release";
  fs::rename(folder / "mp_rank_00_001", folder / "kept");
  fs::rename(folder / "mp_rank_01_001", folder / "mp_rank_00_001");
  fs::rename(folder / "kept", folder / "mp_rank_01_001");
  try {
    const ModelSource exchanged(dir / "megatron");
    FAIL() << "was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find("mp_rank_01_001/model_optim_rng.pt: its args say that rank 2"),
              std::string::npos)
        << error.what();
  }
}

// Several files may record the same rank: a tool that splits one rank's file into two keeps the args, or one
// process writes all files. They must be accepted.
TEST(MegatronTarget, IsReadWhereOneProcessWroteSeveralFiles) {
  for (const int files_each : {2, 6}) {
    const TempDir dir;
    export_megatron({.source = ModelSource(convert_golden("llama"))}, dir / "megatron",
                    {.tensor = 2, .pipeline = 3});
    // the pickled string "rank" of 4 bytes; a 32-bit number follows
    const std::string key("X\x04\0\0\0rankJ", 10);
    for (int rank = 0; rank < 6; ++rank) {
      const std::string path =
          dir / concat("megatron/release/mp_rank_0", rank % 2, "_00", rank / 2, "/model_optim_rng.pt");
      std::string bytes = read_file(path);
      const size_t at = bytes.find(key);
      ASSERT_NE(at, std::string::npos);
      ASSERT_EQ(bytes[at + key.size()], rank);
      bytes[at + key.size()] = static_cast<char>(rank / files_each);
      write_file(path, bytes);
    }
    EXPECT_NO_THROW(ModelSource(dir / "megatron", {.crc = CrcCheck::kNo})) << files_each;
  }
}

TEST(MegatronTarget, RefusesALayoutThatDoesNotDivideTheModel) {
  const TempDir dir;
  const ModelSource source(convert_golden("gpt2"));
  for (const MegatronLayout& layout : {MegatronLayout{.tensor = 2}, MegatronLayout{.pipeline = 3}}) {
    try {
      export_megatron({.source = source}, dir / "x", layout);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(std::string(error.what()).find("is not a multiple of"), std::string::npos) << error.what();
    }
    EXPECT_FALSE(fs::exists(dir / "x"));
  }
}

// The model has 3 layers, of which the second one is not rotated.
TEST(MegatronTarget, RefusesLayersWithoutRotationThatMegatronCannotHave) {
  const TempDir dir;
  const ModelSource source(test::test_data("parity/goldens/train-smollm3"));
  try {
    export_megatron({.source = source}, dir / "x", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what())
                  .find("must divide the number of layers; the model has 3 layers, and "
                        "its --no-rope-freq is 2"),
              std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(fs::exists(dir / "x"));
}

TEST(MegatronTarget, RefusesPartsThatGptModelDoesNotCompute) {
  const TempDir dir;
  for (const auto& [model, message] :
       {std::pair{"families/gpt_neox", "Megatron's GPTModel has no parallel branches"},
        std::pair{"families/phi4", "no rotary scaling of the type longrope"},
        std::pair{"families/yarn", "no rotary scaling of the type yarn"}}) {
    const ModelSource source(convert_golden(model));
    try {
      export_megatron({.source = source}, dir / "x", {});
      ADD_FAILURE() << model;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
    EXPECT_FALSE(fs::exists(dir / "x"));
  }
}

// Phi-3 without scaling computes what LLaMA does; Megatron's args have no place for its name but an ignored
// one.
TEST(MegatronTarget, RemembersTheFamily) {
  const TempDir dir;
  export_megatron({.source = ModelSource(convert_golden("families/phi3"))}, dir / "megatron", {});
  const ModelSource megatron(dir / "megatron");
  EXPECT_EQ(family_of(megatron.config()).title, std::string("Phi-3"));
  export_hf({.source = megatron}, dir / "hf", uint64_t{1} << 40);
  EXPECT_EQ(read_file(dir / "hf/model.safetensors"),
            read_file(convert_golden("families/phi3") + "/model.safetensors"));
}

TEST(MegatronTarget, RefusesNormsThatGptModelLacks) {
  const TempDir dir;
  const ModelSource source(test::test_data("parity/goldens/train-olmo2"));
  try {
    export_megatron({.source = source}, dir / "x", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "Megatron-LM's GPTModel has no norms after attention and feed-forward block (--norm-placement "
        "after): write another format; Megatron-LM's GPTModel has no norm over all heads of the queries "
        "or keys (--qk-norm-all-heads): write another format");
  }
  EXPECT_FALSE(fs::exists(dir / "x"));
  const ModelSource granite(convert_golden("families/granite"));
  try {
    export_megatron({.source = granite}, dir / "x", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("GPTModel has no multiplier (--residual-multiplier 0.6)"),
              std::string::npos)
        << error.what();
  }
}

// What is written is what megatron-core reads (ReadsWhichLayersHaveAWindow).
TEST(MegatronTarget, SaysWhichLayersHaveAWindow) {
  const TempDir dir;
  const ModelSource source(convert_golden("families/qwen2_windows"));
  export_megatron({.source = source}, dir / "x", {});
  const ModelConfig read = ModelSource(dir / "x").config();
  EXPECT_EQ(read.window_of(0), 0);
  EXPECT_EQ(read.window_of(1), 3);
}

TEST(Targets, HaveTheModelsActivationOrRefuseIt) {
  const TempDir dir;
  fs::copy(convert_golden("gpt2"), dir / "gpt2");
  const auto with = [&](const char* activation) {
    Json config = Json::load(dir / "gpt2/config.json");
    config.set("activation_function", activation);
    write_file(dir / "gpt2/config.json", config.dump());
    return ModelSource(dir / "gpt2");
  };
  const ModelSource quick = with("quick_gelu");
  const auto refusal = [](const auto& make) {
    try {
      make();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(
      refusal([&] {
        export_gguf({.source = quick}, dir / "model.gguf", {});
      }).find("llama.cpp computes GELU in the feed-forward block of GPT-2, but the model has quick_gelu"),
      std::string::npos);
  EXPECT_NE(refusal([&] {
              export_megatron({.source = quick}, dir / "megatron", {});
            }).find("Megatron-LM has no option for the activation quick_gelu"),
            std::string::npos);
  const ModelSource squared = with("relu2");
  export_megatron({.source = squared}, dir / "squared", {});
  EXPECT_EQ(ModelSource(dir / "squared").config().activation(), ActivationFunction::kSquaredRelu);
}

// Checks for each type of GGUF file which tensors it holds, and that their values are the model's.
TEST(GgufTarget, HoldsTheModelInEveryType) {
  const TempDir dir;
  const ModelSource source(convert_golden("llama"));
  const SafetensorsFile weights(convert_golden("llama/model.safetensors"));
  const std::map<std::string, std::string> same = {
      {"token_embd.weight", "model.embed_tokens.weight"},
      {"blk.1.attn_v.weight", "model.layers.1.self_attn.v_proj.weight"},
      {"blk.2.ffn_gate.weight", "model.layers.2.mlp.gate_proj.weight"},
      {"blk.2.ffn_up.weight", "model.layers.2.mlp.up_proj.weight"},
      {"blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight"},
      {"output.weight", "lm_head.weight"}};
  for (const auto& [type, epsilon] :
       {std::pair{Storage::kF32, 0.0}, {Storage::kF16, 1e-3}, {Storage::kBf16, 8e-3}}) {
    export_gguf({.source = source}, dir / "model.gguf", type);
    const GgufFile file(dir / "model.gguf");
    EXPECT_EQ(file.tensors().size(), weights.tensors().size());
    for (const auto& [theirs, name] : same) {
      const std::vector<float> got = values_of(file, theirs), want = values_of(weights, name);
      ASSERT_EQ(got.size(), want.size()) << theirs;
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_LE(std::abs(got[i] - want[i]), epsilon * std::abs(want[i]) + (epsilon > 0 ? 1e-7 : 0))
            << theirs;
    }
  }
}

// llama.cpp rotates neighbouring rows, so row 2j + i of a head must be transformers' row i * head / 2 + j.
TEST(GgufTarget, DealsTheRowsOfEachHeadToNeighbours) {
  const TempDir dir;
  const ModelSource source(convert_golden("llama"));
  export_gguf({.source = source}, dir / "model.gguf", Storage::kF32);
  const GgufFile file(dir / "model.gguf");
  const SafetensorsFile weights(convert_golden("llama/model.safetensors"));
  for (const auto& [theirs, name] :
       {std::pair{"blk.1.attn_q.weight", "model.layers.1.self_attn.q_proj.weight"},
        {"blk.1.attn_k.weight", "model.layers.1.self_attn.k_proj.weight"}}) {
    const std::vector<float> got = values_of(file, theirs), want = values_of(weights, name);
    ASSERT_EQ(got.size(), want.size());
    constexpr size_t kHead = 8, kWidth = 24;
    for (size_t row = 0; row < got.size() / kWidth; ++row) {
      const size_t in_head = row % kHead, from = row - in_head + in_head / 2 + in_head % 2 * kHead / 2;
      for (size_t column = 0; column < kWidth; ++column)
        ASSERT_EQ(got[row * kWidth + column], want[from * kWidth + column]) << theirs << " row " << row;
    }
  }
}

TEST(GgufTarget, TellsLlamaCppTheTokenizer) {
  const TempDir dir;
  const ModelSource source(convert_golden("gpt2"));
  export_gguf({.source = source, .tokenizer_folder = convert_golden("gpt2")}, dir.path().string(), {});
  const GgufFile file(dir / "model.gguf");
  const Json& m = file.metadata();
  EXPECT_EQ(m["general.architecture"].as_string(), "gpt2");
  EXPECT_EQ(m["gpt2.feed_forward_length"].as_int(), 36);
  EXPECT_EQ(m["tokenizer.ggml.model"].as_string(), "gpt2");
  EXPECT_EQ(m["tokenizer.ggml.pre"].as_string(), "gpt-2");
  EXPECT_EQ(m["tokenizer.ggml.eos_token_id"].as_int(), 0);
  EXPECT_EQ(m["tokenizer.ggml.token_type"].as_array()[0].as_int(), 3);
  const Json vocabulary = Json::load(convert_golden("gpt2/vocab.json"));
  const Json::Array& tokens = m["tokenizer.ggml.tokens"].as_array();
  ASSERT_EQ(tokens.size(), vocabulary.as_object().size());
  for (const auto& [token, id] : vocabulary.as_object())
    EXPECT_EQ(tokens[static_cast<size_t>(id.as_int())].as_string(), token);
  const Json merges = Json::load(convert_golden("gpt2/tokenizer.json"))["model"]["merges"];
  ASSERT_EQ(m["tokenizer.ggml.merges"].as_array().size(), merges.as_array().size());
}

TEST(Plan, ListsWhatIsWrittenWithoutWriting) {
  const ModelSource source(convert_golden("llama"));
  const Conversion conversion{.source = source};
  uint64_t weights = 0;
  for (const StoredTensor& t : source.tensors().tensors())
    weights += 4 * static_cast<uint64_t>(t.shape().elements());
  EXPECT_EQ(bytes_of(plan_hf(conversion, UINT64_MAX)), weights);
  EXPECT_EQ(bytes_of(plan_checkpoint(conversion)), weights);
  EXPECT_EQ(bytes_of(plan_gguf(conversion, {})), weights);
  const Json json = json_of(plan_megatron(conversion, {.tensor = 2, .pipeline = 3}));
  EXPECT_EQ(json["files"].as_array().size(), 6u);
  EXPECT_EQ(json["files"].as_array()[5]["file"].as_string(), "release/mp_rank_01_002/model_optim_rng.pt");
  const std::string table = table_of(plan_hf(conversion, UINT64_MAX));
  EXPECT_NE(table.find("model.layers.2.self_attn.k_proj.weight"), std::string::npos) << table;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

TEST(Inspect, ListsEveryKind) {
  const TempDir dir;
  const ModelSource source(convert_golden("gpt2"));
  export_gguf({.source = source}, dir / "model.gguf", Storage::kF16);
  export_checkpoint({.source = source}, dir / "ours");
  const int64_t elements = elements_of(plan_checkpoint({.source = source}));
  for (const std::string& path :
       {convert_golden("gpt2"), convert_golden("gpt2/model.safetensors"), dir / "model.gguf", dir / "ours"}) {
    const Json found = inspect(path);
    EXPECT_EQ(found["elements"].as_int(), elements) << path;
    EXPECT_EQ(found["tensors"].as_array().size(), source.tensors().tensors().size()) << path;
    const std::string text = inspect_text(found);
    EXPECT_NE(text.find(found["tensors"].as_array().back()["name"].as_string()), std::string::npos) << text;
    const std::string narrow = inspect_text(found, 60);
    for (const std::string& line : split(narrow.substr(narrow.find("\ntensor")), '\n'))
      EXPECT_LE(line.size(), 60u) << line;
    EXPECT_EQ(words_of(narrow), words_of(text));
  }
}

}  // namespace
}  // namespace megalith
