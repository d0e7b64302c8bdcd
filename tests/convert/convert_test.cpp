#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/params_io.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/checkpoint/views/weights_folder.h"
#include "libcore/convert/convert_options.h"
#include "libcore/convert/sources/tokenizer_folder.h"
#include "libcore/convert/targets/hf.h"
#include "libcore/convert/targets/megalith.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/goldens.h"
#include "tests/support/log_lines.h"
#include "tests/support/tensor_copies.h"
#include "tests/support/tiny_model.h"

namespace megalith {
namespace {

using test::convert_golden;
using test::TempDir;
using test::TensorCopies;
namespace fs = std::filesystem;
constexpr uint64_t kOneFile = UINT64_MAX;

std::string message_of(const std::function<void()>& action, ErrorKind kind) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return {};
}

// Converts a model from Hugging Face's format to ours and back.
void there_and_back(const std::string& from, const std::string& checkpoint, const std::string& to,
                    uint64_t shard = kOneFile) {
  const ModelSource theirs(from);
  export_checkpoint({.source = theirs, .tokenizer_folder = theirs.tokenizer_folder()}, checkpoint);
  const ModelSource ours(checkpoint);
  export_hf({.source = ours, .tokenizer_folder = ours.tokenizer_folder()}, to, shard);
}

// The logits [12, v] of a model for twelve tokens.
std::vector<float> logits(test::TinyModel& model, const std::vector<int32_t>& tokens) {
  KvCache cache(*model.backend, model.stage.config(), model.stage.layers(), {}, {.batch = 1, .capacity = 12});
  return model.read(model.stage.logits(model.ctx(false), {tokens.data(), DType::kI32, {12, 1}}, 12, cache));
}

class ConvertTest : public testing::TestWithParam<const char*> {
 protected:
  const std::string from_ = convert_golden(GetParam());
  const TempDir dir_;
};
INSTANTIATE_TEST_SUITE_P(Families, ConvertTest,
                         testing::Values("gpt2", "llama", "families/qwen2", "families/mistral",
                                         "families/llama3", "families/linear", "families/qwen3",
                                         "families/smollm3", "families/phi3", "families/phi4",
                                         "families/yarn", "families/dynamic", "families/starcoder2",
                                         "families/stablelm", "families/gpt_neox", "families/falcon",
                                         "families/falcon_7b", "families/olmo2", "families/olmo3",
                                         "families/qwen2_windows", "families/granite"),
                         [](const auto& family) {
                           const std::string name = family.param;
                           return name.substr(name.rfind('/') + 1);
                         });

TEST_P(ConvertTest, GivesBackTheWeightsFileOfTransformersByteForByte) {
  there_and_back(from_, dir_ / "ours", dir_ / "theirs");
  EXPECT_EQ(read_file(dir_ / "theirs/model.safetensors"), read_file(from_ + "/model.safetensors"));
  EXPECT_EQ(read_file(dir_ / "ours/latest_checkpointed_iteration.txt"), "release");
  EXPECT_NO_THROW(CheckpointReader(dir_ / "ours").verify());
}

// Compares the converted model's logits with transformers'. They would differ for a wrong order of rows, a
// missing transposition, a wrong epsilon or a wrong rotary base.
TEST_P(ConvertTest, ComputesTransformersLogits) {
  const SafetensorsFile file(from_ + ".logits.safetensors");
  std::vector<int64_t> ids(24);
  file.read(Box::whole("ids", {2, 12}), {ids.data(), DType::kI64, {2, 12}});
  there_and_back(from_, dir_ / "ours", dir_ / "theirs");
  for (const std::string& path : {from_, dir_ / "ours", dir_ / "theirs"}) {
    const ModelSource source(path);
    ModelConfig config = source.config();
    config.seq_length = 12;  // the rotation may depend on it
    test::TinyModel model(config);
    load_params(source.tensors(), model.table, model.stream);
    const int64_t v = source.config().vocab_size;
    std::vector<float> want(static_cast<size_t>(2 * 12 * v));
    file.read(Box::whole("logits", {2, 12, v}), {want.data(), DType::kF32, {2, 12, v}});
    double greatest = 0;
    for (int64_t row = 0; row < 2; ++row) {
      const std::vector<int32_t> tokens(ids.begin() + row * 12, ids.begin() + row * 12 + 12);
      const std::vector<float> got = logits(model, tokens);
      for (size_t i = 0; i < got.size(); ++i)
        greatest =
            std::max(greatest, std::abs(double{got[i]} - want[static_cast<size_t>(row) * got.size() + i]));
    }
    EXPECT_LT(greatest, 1e-5) << path;
  }
}

// For the folder of a Qwen2 model, transformers 5.23's AutoTokenizer gives other ids than the folder's
// tokenizer.json does.
TEST(Convert, WarnsOfATokenizerThatTransformersReadsOtherwise) {
  const Json qwen2 = Json::load(test::test_data("text/goldens/hf/qwen2.json"));
  Json plain = Json::object();
  plain.set("type", "ByteLevel");
  const auto said = [&](const char* family, const Json& pre_tokenizer) {
    const TempDir dir;
    Json json = Json::parse(
        R"({"added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})", "");
    json.set("pre_tokenizer", pre_tokenizer);
    fs::create_directory(dir / "tokenizer");
    write_file(dir / "tokenizer/tokenizer.json", json.dump());
    const test::LogLines log;
    export_hf({.source = ModelSource(convert_golden(family)), .tokenizer_folder = dir / "tokenizer"},
              dir / "hf");
    return join(log.lines, "\n");
  };
  EXPECT_NE(said("families/qwen2", plain).find("PreTrainedTokenizerFast"), std::string::npos);
  EXPECT_EQ(said("families/qwen2", qwen2["pre_tokenizer"]).find("PreTrainedTokenizerFast"),
            std::string::npos);
  EXPECT_EQ(said("families/mistral", plain).find("PreTrainedTokenizerFast"), std::string::npos);
}

TEST(Convert, DividesShardsAsTransformers) {
  const TempDir dir;
  there_and_back(convert_golden("gpt2"), dir / "ours", dir / "theirs", *parse_size("20KB"));
  const Json want = Json::load(convert_golden("gpt2.shards.json")),
             got = Json::load(dir / "theirs/model.safetensors.index.json");
  EXPECT_EQ(got["metadata"]["total_size"].as_int(), want["metadata"]["total_size"].as_int());
  EXPECT_EQ(got["metadata"]["total_parameters"].as_int(), want["metadata"]["total_parameters"].as_int());
  ASSERT_EQ(got["weight_map"].as_object().size(), want["weight_map"].as_object().size());
  for (const auto& [tensor, file] : want["weight_map"].as_object())
    EXPECT_EQ(got["weight_map"][tensor].as_string(), file.as_string()) << tensor;
  EXPECT_FALSE(file_exists(dir / "theirs/model.safetensors"));
  there_and_back(dir / "theirs", dir / "again", dir / "single");
  EXPECT_EQ(read_file(dir / "single/model.safetensors"), read_file(convert_golden("gpt2/model.safetensors")));
}

// The weights of a 16-bit model must stay unchanged, bit for bit, and its files must state the type.
TEST(Convert, KeepsTheStoredType) {
  for (const auto& [dtype, name] : {std::pair{DType::kBf16, "bfloat16"}, {DType::kF16, "float16"}}) {
    const TempDir dir;
    fs::create_directory(dir / "half");
    fs::copy_file(convert_golden("llama/config.json"), dir / "half/config.json");
    const SafetensorsFile file(convert_golden("llama/model.safetensors"));
    std::vector<TensorSpec> specs;
    for (const StoredTensor& tensor : file.tensors()) specs.push_back({tensor.name, dtype, tensor.shape()});
    SafetensorsWriter writer(dir / "half/model.safetensors", specs);
    for (const TensorSpec& spec : writer.order()) {
      std::vector<uint16_t> values(static_cast<size_t>(spec.shape.elements()));
      file.read(Box::whole(spec.name, spec.shape), {values.data(), dtype, spec.shape});
      writer.write(spec.name, values.data(), spec.bytes());
    }
    writer.finish();
    there_and_back(dir / "half", dir / "ours", dir / "theirs");
    EXPECT_EQ(ModelSource(dir / "ours").dtype(), dtype);
    EXPECT_EQ(read_file(dir / "theirs/model.safetensors"), read_file(dir / "half/model.safetensors"));
    EXPECT_EQ(Json::load(dir / "theirs/config.json")["dtype"].as_string(), name);
    EXPECT_EQ(Json::load(dir / "theirs/config.json")["torch_dtype"].as_string(), name);
    EXPECT_NE(read_file(dir / "theirs/README.md").find("# theirs\n"), std::string::npos);
  }
}

// The tables of names must list exactly the parameters that the model declares, with equal shapes.
TEST(NameMap, NamesExactlyTheModelsParameters) {
  for (ModelConfig config : {test::tiny_gpt2(), test::tiny_llama(), test::tiny_qwen3(), test::tiny_gpt_neox(),
                             test::tiny_falcon(), test::tiny_olmo2(), test::tiny_granite()})
    for (const bool linear_bias : {false, true})
      for (const bool untied : {false, true}) {
        config.linear_bias = linear_bias;
        config.qkv_bias = linear_bias;
        config.untied_head = untied;
        std::map<std::string, std::string> declared, named;
        const test::TinyModel model(config);
        for (const Param& param : model.table.all())
          if (param.tie.empty()) declared[param.name] = concat(param.global);
        const NameMap& names = config.layer_norms() == 1  ? falcon_names(1)
                               : config.parallel_residual ? gpt_neox_names()
                               : config.norms_after()     ? olmo2_names()
                               : config.swiglu            ? llama_names()
                                                          : gpt2_names();
        for (const RenamedTensor& renamed : renamed_tensors(names, config))
          if (!renamed.absent) named[renamed.ours] = concat(renamed.shape);
        EXPECT_EQ(declared, named);
      }
}

TEST(Convert, WritesZerosForTheBiasesThatAModelDoesNotHave) {
  const TempDir dir;
  const ModelSource source(convert_golden("gpt2"));
  ModelConfig config = source.config();
  config.qkv_bias = false;
  CheckpointWriter writer(dir / "ours", 3);
  TensorCopies copies;
  for (const StoredTensor& tensor : source.tensors().tensors())
    if (!tensor.name.ends_with("linear_qkv.bias")) copies.put(writer, source.tensors(), tensor);
  const float moment = 1;
  writer.put(Box::whole("optim.m.x", {1}), {&moment, DType::kF32, {1}});
  std::ofstream(dir / "run.jsonl") << R"({"type": "start", "time": 1}
{"type": "train", "iteration": 1, "loss": 3.5}
{"type": "train", "iteration": 2, "loss": 2.25}
{"type": "valid", "iteration": 2, "loss": 2.75}
)";
  Json args = to_json(config);
  args.set("data_path", "corpus|text_\\document");
  // a file of this name is found two folders above the checkpoint
  args.set("log_json", "/folder/of/another/machine/run.jsonl");
  writer.put_json(kArgsFile, args);
  writer.put_json(kStateFile, Json::object());
  writer.commit();
  const ModelSource ours(dir / "ours");
  EXPECT_EQ(ours.iteration(), 3);
  export_hf({.source = ours}, dir / "theirs");
  const WeightsFolder folder(dir / "theirs");
  std::vector<float> bias(60, 1);
  folder.read(Box::whole("transformer.h.1.attn.c_attn.bias", {60}), {bias.data(), DType::kF32, {60}});
  EXPECT_EQ(bias, std::vector<float>(60, 0));
  EXPECT_EQ(folder.tensors().size(),
            SafetensorsFile(convert_golden("gpt2/model.safetensors")).tensors().size());
  const std::string card = read_file(dir / "theirs/README.md"), picture = read_file(dir / "theirs/loss.svg");
  // The model has 20 positions, and a prompt of one byte is at most one token: 19 are left.
  for (const char* part :
       {"for 3 iterations", "(loss.svg)", "\"a\", max_new_tokens=19)", "Training 2.2500, validation 2.7500",
        "| data_path | corpus\\|text_\\\\document |", "| num_layers | 2 |"})
    EXPECT_NE(card.find(part), std::string::npos) << part << '\n' << card;
  EXPECT_TRUE(picture.starts_with("<svg xmlns=")) << picture;
  EXPECT_NE(picture.find("<title>iteration 2: 2.75</title>"), std::string::npos) << picture;
  EXPECT_TRUE(Json::load(dir / "theirs/config.json")["bos_token_id"].is_null());
}

// An evaluation made after the checkpoint was saved must be used: the log has several validation losses for
// the checkpoint's iteration, of which the last one counts.
TEST(Convert, TellsOfTheEvaluationAtTheEnd) {
  const TempDir dir;
  const ModelSource source(convert_golden("gpt2"));
  CheckpointWriter writer(dir / "ours", 4);
  TensorCopies copies;
  for (const StoredTensor& tensor : source.tensors().tensors()) copies.put(writer, source.tensors(), tensor);
  Json args = to_json(source.config());
  args.set("log_json", dir / "run.jsonl");
  args.set("log_interval", 2);
  writer.put_json(kArgsFile, args);
  writer.put_json(kStateFile, Json::object());
  LossHistory losses;
  for (int i = 1; i <= 4; ++i) losses.add_train(i, 5 - i);
  losses.add_valid(4, 2.5);
  writer.put_json(kLossesFile, losses.to_json());
  writer.commit();
  std::ofstream(dir / "run.jsonl") << R"({"type": "valid", "iteration": 4, "loss": 2.5}
{"type": "valid", "iteration": 4, "loss": 2.375}
{"type": "valid", "iteration": 6, "loss": 9.5}
)";
  export_hf({.source = ModelSource(dir / "ours")}, dir / "theirs");
  const std::string card = read_file(dir / "theirs/README.md");
  EXPECT_NE(card.find("Training 1.5000, validation 2.3750 (nats"), std::string::npos) << card;
}

// The losses stored in the checkpoint must take precedence, and the chart must be drawn even without a log of
// the run.
TEST(Convert, DrawsTheLossesThatACheckpointKeeps) {
  const TempDir dir;
  const ModelSource source(convert_golden("gpt2"));
  CheckpointWriter writer(dir / "ours", 2);
  TensorCopies copies;
  for (const StoredTensor& tensor : source.tensors().tensors()) copies.put(writer, source.tensors(), tensor);
  writer.put_json(kArgsFile, to_json(source.config()));
  writer.put_json(kStateFile, Json::object());
  LossHistory losses;
  losses.add_train(1, 4.5);
  losses.add_train(2, 3.125);
  writer.put_json(kLossesFile, losses.to_json());
  writer.commit();
  const ModelSource ours(dir / "ours");
  export_hf({.source = ours}, dir / "theirs");
  EXPECT_NE(read_file(dir / "theirs/README.md").find("Training 3.1250 (nats"), std::string::npos);
  EXPECT_TRUE(file_exists(dir / "theirs/loss.svg"));
}

// A copy of a golden folder with one change.
class Changed {
 public:
  explicit Changed(const char* name) {
    for (const auto& entry : fs::directory_iterator(convert_golden(name)))
      fs::copy_file(entry.path(), dir_.path() / entry.path().filename());
  }
  std::string path() const { return dir_.path().string(); }
  // Rewrites the weights file. Each tensor gets the name that `named` returns for it, or is left out if the
  // name is empty. The tensors of `more` are added, filled with zeros, or with the tensor that `origin`
  // names.
  void rewrite(const std::function<std::string(const std::string&)>& named,
               const std::vector<TensorSpec>& more = {}, std::map<std::string, std::string> origin = {}) {
    const SafetensorsFile file(convert_golden("gpt2/model.safetensors"));
    std::vector<TensorSpec> specs = more;
    for (const StoredTensor& tensor : file.tensors()) {
      const std::string name = named(tensor.name);
      if (name.empty()) continue;
      specs.push_back({name, DType::kF32, tensor.shape()});
      origin[name] = tensor.name;
    }
    SafetensorsWriter writer(path() + "/new", specs);
    for (const TensorSpec& spec : writer.order()) {
      std::vector<std::byte> bytes(spec.bytes());
      if (origin.contains(spec.name))
        file.read(Box::whole(origin[spec.name], spec.shape), {bytes.data(), spec.dtype, spec.shape});
      writer.write(spec.name, bytes.data(), spec.bytes());
    }
    writer.finish();
    fs::rename(path() + "/new", path() + "/model.safetensors");
  }
  void rename(const std::string& name, const std::string& to) {
    rewrite([&](const std::string& old) { return old == name ? to : old; });
  }
  void set(const char* key, const Json& value) {
    Json json = Json::load(path() + "/config.json");
    json.set(key, value);
    std::ofstream(path() + "/config.json") << json.dump();
  }
  std::string refusal() const {
    return message_of([&] { ModelSource source(path()); }, ErrorKind::kData);
  }

 private:
  TempDir dir_;
};

TEST(ModelSource, NamesTheTensorThatDoesNotFit) {
  Changed missing("gpt2"), strange("gpt2"), deeper("gpt2"), wider("gpt2");
  missing.rename("transformer.h.1.ln_2.bias", "");
  EXPECT_NE(missing.refusal().find("no tensor \"transformer.h.1.ln_2.bias\""), std::string::npos)
      << missing.refusal();
  strange.rename("transformer.h.1.ln_2.bias", "transformer.h.1.ln_3.bias");
  EXPECT_NE(strange.refusal().find("nearest name is"), std::string::npos) << strange.refusal();
  deeper.set("n_layer", 1);
  EXPECT_NE(deeper.refusal().find("12 tensors have no place in a GPT2LMHeadModel"), std::string::npos)
      << deeper.refusal();
  wider.set("n_inner", 40);
  EXPECT_NE(wider.refusal().find("is [36], but the configuration says [40]"), std::string::npos)
      << wider.refusal();
  for (const char* const file : {"/model.safetensors: tensor ", "/config.json)"})
    EXPECT_NE(wider.refusal().find(file), std::string::npos) << wider.refusal();
}

// Reads files like the first ones of GPT-2: no "transformer." before the names, the causal masks among the
// tensors, and the tied head saved again.
TEST(ModelSource, ReadsOldGpt2Files) {
  Changed folder("gpt2");
  folder.rewrite([](const std::string& name) { return name.substr(std::string("transformer.").size()); },
                 {{"h.0.attn.bias", DType::kU8, {1, 1, 20, 20}},
                  {"h.1.attn.masked_bias", DType::kF32, {1}},
                  {"lm_head.weight", DType::kF32, {300, 20}}},
                 {{"lm_head.weight", "transformer.wte.weight"}});
  const TempDir dir;
  export_hf({.source = ModelSource(folder.path())}, dir / "out");
  EXPECT_EQ(read_file(dir / "out/model.safetensors"), read_file(convert_golden("gpt2/model.safetensors")));
}

// transformers 4 would take the embedding for the head, transformers 5 the head that is stored.
TEST(ModelSource, RefusesAnotherHeadOfATiedModel) {
  const auto same = [](const std::string& name) { return name; };
  Changed zeros("gpt2"), longer("gpt2"), untied("llama");
  zeros.rewrite(same, {{"lm_head.weight", DType::kF32, {300, 20}}});
  EXPECT_NE(zeros.refusal().find("\"lm_head.weight\" is not equal to \"transformer.wte.weight\""),
            std::string::npos)
      << zeros.refusal();
  longer.rewrite(same, {{"lm_head.weight", DType::kF32, {301, 20}}});
  EXPECT_NE(longer.refusal().find("is [301, 20], but the configuration says [300, 20]"), std::string::npos)
      << longer.refusal();
  untied.set("tie_word_embeddings", true);
  EXPECT_NE(untied.refusal().find("set \"tie_word_embeddings\" to false"), std::string::npos)
      << untied.refusal();
}

TEST(ModelSource, RefusesOtherKindsByName) {
  const TempDir dir;
  const auto refusal = [&](const std::string& path, ErrorKind kind = ErrorKind::kData) {
    return message_of([&] { ModelSource source(path); }, kind);
  };
  const auto put = [&](const std::string& name, const std::string& text = "x") {
    fs::create_directories(fs::path(dir / name).parent_path());
    std::ofstream(dir / name) << text;
  };
  put("megatron/iter_0000005/mp_rank_00/model_optim_rng.pt");
  put("megatron/latest_checkpointed_iteration.txt", "5");
  put("bin/config.json", "{}");
  put("bin/pytorch_model.bin");
  put("peft/adapter_config.json", "{}");
  put("empty/x");
  put("gguf/model.gguf");
  put("noweights/config.json",
      R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 4, "n_head": 1, "vocab_size": 8})");
  EXPECT_NE(refusal(dir / "megatron").find("model_optim_rng.pt: is not a file of torch.save"),
            std::string::npos);
  EXPECT_NE(refusal(dir / "bin").find("config.json: \"model_type\" is"), std::string::npos);
  EXPECT_NE(refusal(dir / "peft").find("an adapter of peft"), std::string::npos);
  EXPECT_NE(refusal(dir / "gguf").find("GGUF"), std::string::npos);
  EXPECT_NE(refusal(dir / "gguf/model.gguf").find("GGUF"), std::string::npos);
  EXPECT_NE(
      refusal(dir / "bin/pytorch_model.bin").find("one file of a model; give its folder, " + (dir / "bin")),
      std::string::npos);
  put("alone/pytorch_model.bin");
  EXPECT_NE(refusal(dir / "alone/pytorch_model.bin").find("the folder that holds config.json"),
            std::string::npos);
  EXPECT_NE(refusal(dir / "empty", ErrorKind::kNoInput).find("holds no model"), std::string::npos);
  EXPECT_NE(refusal(dir / "noweights", ErrorKind::kNoInput).find("neither model.safetensors"),
            std::string::npos);
  EXPECT_NE(refusal(dir / "nowhere", ErrorKind::kNoInput).find("no such file or folder"), std::string::npos);
}

TEST(Convert, ReplacesOnlyEarlierExports) {
  const TempDir dir;
  const ModelSource source(convert_golden("llama"));
  export_hf({.source = source}, dir / "out");
  export_hf({.source = source}, dir / "out", *parse_size("30KB"));
  EXPECT_FALSE(file_exists(dir / "out/model.safetensors"));
  std::ofstream(dir / "out/notes.txt") << "mine";
  EXPECT_NE(message_of([&] { export_hf({.source = source}, dir / "out"); }, ErrorKind::kUsage)
                .find("\"notes.txt\""),
            std::string::npos);
  EXPECT_EQ(read_file(dir / "out/notes.txt"), "mine");
  EXPECT_NE(message_of([&] { export_hf({.source = source}, convert_golden("llama")); }, ErrorKind::kUsage)
                .find("is the model that is read"),
            std::string::npos);
  export_checkpoint({.source = source}, dir / "ours");
  EXPECT_NE(message_of([&] { export_checkpoint({.source = source}, dir / "ours"); }, ErrorKind::kUsage)
                .find("exists already"),
            std::string::npos);
}

// Hugging Face tokenizers wrote both forms of the golden tokenizer. Each must be derived from the other.
TEST(TokenizerFolder, DerivesTheFormsThatAreMissing) {
  const ModelConfig config = ModelSource(convert_golden("gpt2")).config();
  const Json vocabulary = Json::load(convert_golden("gpt2/vocab.json"));
  const std::string text = "def add(self, x):\n    return 10  # naïve 日本";
  std::vector<int32_t> want;
  make_tokenizer({.type = "HuggingFaceTokenizer", .vocab = {}, .merges = {}, .model = convert_golden("gpt2")})
      ->encode(text, want);
  for (const std::vector<const char*>& given :
       {std::vector{"tokenizer.json"}, std::vector{"vocab.json", "merges.txt"}}) {
    const TempDir dir;
    for (const char* name : given) fs::copy_file(convert_golden("gpt2/") + name, dir / name);
    const HfTokenizerFiles tokenizer = hf_tokenizer_files(dir.path().string(), config);
    EXPECT_EQ(tokenizer.ids.eos, 0);
    EXPECT_EQ(tokenizer.ids.bos, 0);
    for (const char* name :
         {"tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json"})
      ASSERT_TRUE(tokenizer.files.contains(name)) << name;
    for (const char* name : given)
      EXPECT_EQ(tokenizer.files.at(name), read_file(convert_golden("gpt2/") + name));
    Json::Object sorted = Json::parse(tokenizer.files.at("vocab.json"), "vocab.json").as_object(),
                 other = vocabulary.as_object();
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::sort(other.begin(), other.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    EXPECT_EQ(Json(sorted), Json(other));
    const TempDir out;
    for (const auto& [name, contents] : tokenizer.files) std::ofstream(out / name) << contents;
    for (const TokenizerFiles& form :
         {TokenizerFiles{
              .type = "HuggingFaceTokenizer", .vocab = {}, .merges = {}, .model = out.path().string()},
          TokenizerFiles{.type = "GPT2BPETokenizer",
          .vocab = out / "vocab.json",
          .merges = out / "merges.txt",
          .model = {}}}) {
      std::vector<int32_t> ids;
      make_tokenizer(form)->encode(text, ids);
      EXPECT_EQ(ids, want) << form.type;
    }
  }
}

TEST(TokenizerFolder, RefusesATokenizerWithMoreIdsThanTheModel) {
  ModelConfig config = ModelSource(convert_golden("gpt2")).config();
  config.vocab_size = 299;
  EXPECT_NE(message_of([&] { hf_tokenizer_files(convert_golden("gpt2"), config); }, ErrorKind::kData)
                .find("has id 299"),
            std::string::npos);
}

// transformers 5 writes "extra_special_tokens" as a list, on which transformers 4 fails. The export must use
// the older name.
TEST(TokenizerFolder, NamesSpecialTokensForBothTransformers) {
  const TempDir dir;
  std::ofstream(dir / "tokenizer.json")
      << R"({"model": {"type": "BPE", "vocab": {"a": 0, "<s>": 1}, "merges": []}})";
  std::ofstream(dir / "tokenizer_config.json") << R"({"extra_special_tokens": ["<s>"], "eos_token": "<s>"})";
  ModelConfig config;
  config.vocab_size = 2;
  const HfTokenizerFiles tokenizer = hf_tokenizer_files(dir.path().string(), config);
  const Json settings = Json::parse(tokenizer.files.at("tokenizer_config.json"), "tokenizer_config.json");
  EXPECT_EQ(settings.find("extra_special_tokens"), nullptr);
  EXPECT_EQ(settings["additional_special_tokens"].dump(), R"(["<s>"])");
  EXPECT_EQ(tokenizer.ids.eos, 1);
}

}  // namespace
}  // namespace megalith
