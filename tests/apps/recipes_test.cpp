// Each of share/recipes, scaled down: its command on a small model, and the size of its own.
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

const fs::path kRecipes = fs::path(MEGALITH_SOURCE_DIR) / "share/recipes";

/// A folder with what the recipes name: tokenizer, notes, a dataset, a model, chats.
class Recipes : public testing::Test {
 protected:
  Recipes() {
    fs::copy(kRecipes, dir_.path());
    fs::copy(test_data("text/goldens/trained"), dir_ / "tokenizer");
    fs::create_directory(dir_ / "notes");
    std::string chats;
    for (int i = 0; i < 200; ++i) {
      write_file(dir_ / concat("notes/", i, ".txt"),
                 concat("def main", i, "(self): return ", i * i, " words\n"));
      chats += concat(R"({"messages": [{"role": "user", "content": "a )", i,
                      R"("}, {"role": "assistant", "content": "b"}]})", "\n");
    }
    write_file(dir_ / "chats.jsonl", chats);
    fs::copy(test_data("parity/goldens/generate-llama"), dir_ / "model");
    fs::copy(test_data("text/goldens/trained/tokenizer.json"), dir_ / "model");
    write_file(dir_ / "model/chat_template.jinja",
               "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}"
               "{% if add_generation_prompt %}assistant:{% endif %}");
    fs::copy(dir_ / "model", dir_ / "llama-7b");
  }
  CommandResult run(const std::string& command) const {
    return run_command(concat("cd ", dir_.path().string(),
                              " && export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive PATH=",
                              MEGALITH_BINARY_DIR, "/bin:$PATH; ", command));
  }
  void ok(const std::string& command) const {
    const CommandResult result = run(command);
    EXPECT_EQ(result.code, 0) << command << '\n' << result.all();
  }
  /// The commands in the comment at a recipe's beginning.
  std::vector<std::string> commands(const std::string& recipe) const {
    std::vector<std::string> out;
    for (const std::string& line : split(read_file(dir_ / recipe), '\n'))
      if (line.starts_with("#   ")) out.push_back(line.substr(4));
    return out;
  }
  TempDir dir_;
};

const std::string kSmallModel =
    " --num-layers 2 --hidden-size 16 --num-attention-heads 2 --max-position-embeddings 16";
const std::string kShort = " --seq-length 16 --train-iters 3 --lr-warmup-iters 1 --device cpu";

// What makes each recipe small. The programs are the recipe's own commands.
const std::map<std::string, std::string> kSmall = {
    {"small-cpu.yaml", kSmallModel + kShort + " --ffn-hidden-size 32 --micro-batch-size 2"},
    {"gpt2-124m-cpu.yaml", kSmallModel + kShort + " --global-batch-size 4"},
    {"gpt2-124m-gpu.yaml",
     kSmallModel + kShort + " --micro-batch-size 2 --global-batch-size 4 --eval-interval 2 --eval-iters 1"},
    {"gpt2-1.5b-gpu.yaml",
     kSmallModel + kShort + " --micro-batch-size 2 --global-batch-size 4 --eval-interval 2 --eval-iters 1"},
    {"llama-7b-gpu.yaml", kShort + " --global-batch-size 4 --eval-iters 1"},
    {"lora-chat.yaml", " --max-length 32 --micro-batch-size 1 --global-batch-size 8 --num-epochs 1"}};

TEST_F(Recipes, WorkWhenScaledDown) {
  ok("megalith-preprocess --input notes --text file --output-prefix corpus --append-eod --tokenizer-model "
     "tokenizer");
  for (const auto& [recipe, options] : kSmall) {
    for (const std::string& command : commands(recipe)) {
      const bool trains = command.find("--config " + recipe) != std::string::npos;
      if (command.starts_with("megalith-tokenizer ")) continue;  // too little text for 8192 tokens
      if (command.starts_with("megalith-generate "))
        ok("echo a | " + command + " -n 2");
      else
        ok(command + (trains ? options : ""));
    }
    ok("rm -rf gpt2-124m");  // two recipes save there
  }
  ok("megalith-pretrain --config llama-7b-gpu.yaml --load llama-7b-more --no-finetune --data-path "
     "corpus_text_document" +
     kSmall.at("llama-7b-gpu.yaml"));  // as its comment says
}

TEST_F(Recipes, AreAllTriedAndInTheDocs) {
  std::set<std::string> found;
  const std::string page = read_file(MEGALITH_SOURCE_DIR "/docs/recipes.md");
  for (const auto& entry : fs::directory_iterator(kRecipes)) {
    const std::string name = entry.path().filename().string(), text = read_file(entry.path().string());
    found.insert(name);
    EXPECT_NE(page.find("`" + name + "`"), std::string::npos) << name;
    const bool gpu = text.find("\ndevice: cuda\n") != std::string::npos;
    EXPECT_EQ(gpu, text.find("Not yet run on a GPU.") != std::string::npos) << name;
  }
  EXPECT_EQ(found.size(), 6u);
  for (const std::string& name : found) EXPECT_TRUE(kSmall.contains(name)) << name;
}

// The numbers of parameters that OpenAI's models have; that of the small one is 4 * 320^2 + 3 * 320 * 864 in
// each of six layers, two norms of 320 there, one at the end, and 8192 * 320 for the tokens.
TEST_F(Recipes, HaveTheModelsTheyName) {
  for (const auto& [recipe, vocabulary, parameters] : {std::tuple{"gpt2-124m-cpu.yaml", 50256, "124,439,808"},
                                                       {"gpt2-124m-gpu.yaml", 50256, "124,439,808"},
                                                       {"gpt2-1.5b-gpu.yaml", 50256, "1,557,611,200"},
                                                       {"small-cpu.yaml", 8191, "10,059,840"}}) {
    const CommandResult result = run(concat(
        "megalith-pretrain --config ", recipe, " --mock-data --tokenizer-type NullTokenizer --vocab-size ",
        vocabulary, " --make-vocab-size-divisible-by 1 --device cpu --dry-run"));
    EXPECT_EQ(result.code, 0) << result.all();
    EXPECT_NE(result.out.find(concat(' ', parameters, " parameters")), std::string::npos)
        << recipe << result.out;
  }
}

}  // namespace
}  // namespace megalith::test
