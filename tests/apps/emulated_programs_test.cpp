// The programs that read a trained model, with --device cuda on the emulated device (tests/emulator),
// compared with the same on the CPU.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/apps/finetune/finetune_app.h"
#include "tests/apps/pretrain/emulated_pretrain.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// Puts a golden model, with a tokenizer, in place of this folder.
void put_model(const std::string& name, const std::string& folder) {
  fs::remove_all(folder);
  fs::copy(test_data("parity/goldens/" + name), folder);
  fs::copy(test_data("text/goldens/trained/tokenizer.json"), folder);
}

/// Generates with a small model on the CPU and on the emulated device.
class EmulatedCudaGenerate : public testing::Test {
 protected:
  void take_model(const std::string& name) const { put_model(name, dir_ / "model"); }
  CommandResult generate(const std::string& options) const {
    return run_command(app("generate") + " --max-new-tokens 12 --temperature 0 --model " + (dir_ / options));
  }
  /// Both devices must write the same text, which it returns. `options`: first the folder of the model.
  std::string expect_same_text(const std::string& options) const {
    const CommandResult cpu = generate(options + " --device cpu"),
                        cuda = generate(options + " --device cuda");
    EXPECT_EQ(cuda.code, 0) << cuda.all();
    EXPECT_EQ(cuda.out, cpu.out) << options;
    return cuda.out;
  }
  const TempDir dir_;
  const EmulatedDeviceForPrograms device_{2};
};

TEST_F(EmulatedCudaGenerate, WritesTheTextOfTheCpu) {
  for (const char* model : {"generate-gpt2", "generate-llama", "generate-qwen3", "generate-phi4",
                            "generate-olmo2", "generate-gpt_neox", "generate-falcon_7b"}) {
    take_model(model);
    for (const char* cache : {"", " --kv-cache bf16"})
      EXPECT_NE(expect_same_text(std::string("model --prompt 'The first'") + cache), "");
  }
}

// Both keep 16 bits as they are stored; the device computes in them, the CPU in fp32.
TEST_F(EmulatedCudaGenerate, KeepsTheTypeOfTheWeights) {
  take_model("generate-gpt2");
  for (const std::string type : {"fp16", "bf16"}) {
    const CommandResult made = run_command(app("convert") + " " + (dir_ / "model") + " --dtype " + type +
                                           " --output " + (dir_ / type));
    ASSERT_EQ(made.code, 0) << made.all();
    for (const std::string device : {"cpu", "cuda"}) {
      const CommandResult result = generate(type + " --prompt The --device " + device);
      EXPECT_NE(result.err.find("of weights (" + type), std::string::npos) << result.all();
    }
    expect_same_text(type + " --prompt 'The first'");
  }
}

// The CPU computes at most 16 sequences at once as if each were alone.
TEST_F(EmulatedCudaGenerate, GeneratesMoreSequencesAtOnceThanTheCpu) {
  take_model("generate-llama");
  std::string prompts;
  for (size_t i = 0; i < 34; ++i) prompts += "The" + std::string(i % 11, 'a') + "\n";
  write_file(dir_ / "prompts", prompts);
  const std::string command = "model --prompts-file " + (dir_ / "prompts");
  const CommandResult cpu = generate(command + " --batch-size 16"),
                      cuda = generate(command + " --batch-size 34 --device cuda"),
                      refused = generate(command + " --batch-size 17");
  ASSERT_EQ(cuda.code, 0) << cuda.all();
  EXPECT_EQ(cuda.out, cpu.out);
  EXPECT_EQ(refused.code, 64);
  EXPECT_NE(refused.err.find("--batch-size 17: the CPU computes up to 16"), std::string::npos) << refused.err;
}

TEST_F(EmulatedCudaGenerate, SeesNoFurtherThanAWindow) {
  take_model("generate-llama");
  const std::string whole = expect_same_text("model --prompt 'The first of all'");
  Json config = Json::load(dir_ / "model/config.json");
  config.set("architectures", Json::parse(R"(["MistralForCausalLM"])", "test"));
  config.set("model_type", "mistral");
  config.set("sliding_window", 3);
  write_file(dir_ / "model/config.json", config.dump());
  EXPECT_NE(expect_same_text("model --prompt 'The first of all'"), whole);
}

TEST(EmulatedCudaEval, GivesTheFiguresOfTheCpu) {
  const EmulatedDeviceForPrograms device(2);
  for (const char* model : {"generate-gpt2", "generate-llama"}) {
    const TempDir dir;
    put_model(model, dir / "model");
    const std::string goldens = test_data("evaluate/goldens/");
    const std::string command = app("eval") + " --model " + (dir / "model") +
                                " --tasks hellaswag=" + goldens + "hellaswag.jsonl,lambada=" + goldens +
                                "lambada.jsonl," + goldens + "texts.jsonl --num-fewshot 1 --device ";
    const CommandResult cpu = run_command(command + "cpu"), cuda = run_command(command + "cuda");
    ASSERT_EQ(cuda.code, 0) << cuda.all();
    // Perplexities of texts and acc; lambada's is a number of twenty digits, which rounding changes.
    const auto figures = [](const std::string& table) {
      std::string out;
      for (const std::string& line : split(table, '\n'))
        if (line.find(" perplexity") == std::string::npos && line.find("word_") == std::string::npos)
          out += line.substr(0, line.find_last_of("0123456789.")) + '\n';
      return out;
    };
    EXPECT_EQ(figures(cuda.out), figures(cpu.out));
  }
}

/// Tunes a small model on the CPU and on the emulated device.
class EmulatedCudaFinetune : public FinetuneApp {
 protected:
  /// Six steps on both devices, whose losses must agree.
  void expect_same_losses(const std::string& method, double limit = 1e-5) const {
    SCOPED_TRACE(method);
    for (const std::string where : {"cpu", "cuda"}) {
      for (const std::string old : {"out", "log.jsonl"}) fs::remove_all(dir_ / old);
      const CommandResult result = tune(method +
                                        " --max-steps 6 --per-device-train-batch-size 2 --lr 0.001 "
                                        "--log-json log.jsonl --device " +
                                        where);
      ASSERT_EQ(result.code, 0) << result.all();
      fs::copy_file(dir_ / "log.jsonl", dir_ / (where + ".jsonl"), fs::copy_options::overwrite_existing);
    }
    const std::vector<double> cpu = losses("cpu.jsonl");
    ASSERT_EQ(cpu.size(), 6U);
    EXPECT_NE(cpu.front(), cpu.back());
    EXPECT_LE(worst_difference(cpu, losses("cuda.jsonl")), limit);
  }
  void take_llama() const { put_model("generate-llama", dir_ / "model"); }
  const EmulatedDeviceForPrograms device_{3};
};

TEST_F(EmulatedCudaFinetune, TunesWeightsAndPrefixesAsTheCpuDoes) {
  for (const char* method : {"", "--packing", "--prefix-tuning --num-prefix-tokens 5"})
    expect_same_losses(method);
}

// A loss is the mean of some ten learned tokens, so 16 bits change it more than that of a whole batch.
TEST_F(EmulatedCudaFinetune, TunesAdaptersAsTheCpuDoes) {
  expect_same_losses("--lora --lora-dropout 0.1 --loraplus-lr-ratio 4");
  expect_same_losses("--lora --packing --target-modules c_fc");
  expect_same_losses("--lora --bf16", 5e-3);
  expect_same_losses("--lora --fp16", 6e-4);
}

// Records of some ten tokens, of which each sees three.
TEST_F(EmulatedCudaFinetune, TunesWithinAWindowAsTheCpuDoes) {
  take_llama();
  expect_same_losses("");
  const std::vector<double> whole = losses("cpu.jsonl");
  narrow_model(3);
  for (const char* method : {"", "--packing"}) expect_same_losses(method);
  EXPECT_NE(losses("cpu.jsonl"), whole);
  expect_same_losses("--lora --bf16", 5e-3);
}

// The keys and values are some of the columns of the layer that computes them and the queries.
TEST_F(EmulatedCudaFinetune, TunesAdaptersOfSomeColumnsAsTheCpuDoes) {
  take_llama();
  expect_same_losses("--lora --target-modules v_proj,k_proj");
}

TEST_F(EmulatedCudaFinetune, PrefersAnswersAsTheCpuDoes) {
  write_pairs();
  expect_same_losses("--dpo");
  expect_same_losses("--dpo --lora");
}

TEST_F(EmulatedCudaFinetune, RefusesEightBitsUnderTheNameGpuToo) {
  for (const std::string device : {"cuda", "gpu"}) {
    const CommandResult result = tune("--max-steps 1 --lora --qlora --device " + device);
    EXPECT_EQ(result.code, 64) << result.all();
    EXPECT_NE(result.all().find(
                  "--device cuda: this version does not train on GPUs by LoRA over weights of 8 bits"),
              std::string::npos)
        << result.all();
  }
}

}  // namespace
}  // namespace megalith::test
