#include "libcore/finetune/record_files.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"

namespace megalith::test {
namespace {

TEST(HeldOut, IsAShareOrANumber) {
  const auto count = [](const std::vector<bool>& held) { return std::count(held.begin(), held.end(), true); };
  EXPECT_EQ(count(held_out(100, 0.05, 1, "x")), 5);
  EXPECT_EQ(count(held_out(100, 0.001, 1, "x")), 1);
  EXPECT_EQ(count(held_out(100, 7, 1, "x")), 7);
  EXPECT_THROW(held_out(3, 3, 1, "x"), Error);
  EXPECT_THROW(held_out(1, 0.1, 1, "x"), Error);
}

// Each record can be held out. Only the seed determines which ones are.
TEST(HeldOut, IsDrawnBySeed) {
  EXPECT_EQ(held_out(100, 0.1, 1, "x"), held_out(100, 0.1, 1, "x"));
  std::vector<int> times(20);
  for (int seed = 0; seed < 400; ++seed) {
    const std::vector<bool> held = held_out(20, 0.25, seed, "x");
    for (size_t i = 0; i < held.size(); ++i) times[i] += held[i] ? 1 : 0;
  }
  // The tolerance: five standard deviations of a binomial distribution (400, 1/4).
  for (const int n : times) EXPECT_NEAR(n, 100, 45);
}

/// A model folder with a tokenizer that puts <s> before a text, and options that name the model.
class TokenizerOfModel : public testing::Test {
 protected:
  TokenizerOfModel() {
    std::filesystem::copy(test_data("parity/goldens/generate-gpt2"), dir_ / "model");
    std::filesystem::copy(test_data("text/goldens/hf/llama3.json"), dir_ / "model/tokenizer.json");
  }
  TokenizerFiles files(TokenizerConfig& config) const {
    return tokenizer_of(config, ModelSource(dir_ / "model"));
  }
  TempDir dir_;
};

TEST_F(TokenizerOfModel, IsItsOwnWithWhatTheOptionsSayBesideTheFiles) {
  TokenizerConfig config;
  config.eod = "<|eot_id|>";
  config.hf_special_tokens = false;
  config.special_tokens = {"<a>", "<b>"};
  config.tiktoken_pattern = "v1";
  config.tiktoken_special_tokens = 77;
  const TokenizerFiles found = files(config);
  EXPECT_EQ(found.type, "HuggingFaceTokenizer");
  EXPECT_EQ(found.model, dir_ / "model");
  EXPECT_EQ(found.eod, "<|eot_id|>");
  EXPECT_FALSE(found.hf_special_tokens);
  EXPECT_EQ(found.special_tokens, (std::vector<std::string>{"<a>", "<b>"}));
  EXPECT_EQ(found.tiktoken_pattern, "v1");
  EXPECT_EQ(found.tiktoken_special_tokens, 77);
  // The options name the tokenizer now, so that a checkpoint stores it.
  EXPECT_EQ(config.type, found.type);
  EXPECT_EQ(config.model, found.model);
  EXPECT_EQ(config.eod, found.eod);
}

TEST_F(TokenizerOfModel, OfIdsHasTheModelsVocabulary) {
  TokenizerConfig config;
  config.type = "NullTokenizer";
  EXPECT_EQ(make_tokenizer(files(config))->vocab_size(), 700);  // the size is that of config.json
}

/// The prompt of the record {"src": "q", "tgt": "a"}, as a chat.
std::string prompt_of(const TuningDataOptions& options, const TokenizerFiles& tokenizer) {
  const TempDir dir;
  write_file(dir / "one.json", R"({"src": "q", "tgt": "a"})");
  const RecordFiles records(options, ModelSource(options.model), tokenizer, 0);
  return records.questions({dir / "one.json"}, {}).at(0).prompt;
}

// The model's tokenizer has <|eot_id|>, but not <|start_header_id|>.
TEST_F(TokenizerOfModel, HasTheMarksOfANamedTemplateOrItsOwnTemplateIsUsed) {
  write_file(dir_ / "model/chat_template.jinja", "own:{% for m in messages %}{{ m.content }};{% endfor %}");
  TuningDataOptions options;
  options.model = dir_ / "model";
  options.style = PromptStyle::kChat;
  TokenizerConfig config;
  const TokenizerFiles tokenizer = files(config);
  EXPECT_EQ(prompt_of(options, tokenizer), "own:q;");
  options.named_template = {.name = "--template mine",
                            .jinja = "{% for m in messages %}{{ m.content }}<|eot_id|>{% endfor %}",
                            .marks = {"<|eot_id|>"}};
  EXPECT_EQ(prompt_of(options, tokenizer), "q<|eot_id|>");
  const RecordFiles records(options, ModelSource(options.model), tokenizer, 0);
  ASSERT_EQ(records.ends().size(), 2U);  // beside that of the model's config.json
  EXPECT_EQ(records.tokenizer().decode({&records.ends()[1], 1}), "<|eot_id|>");
  options.named_template->marks.push_back("<|start_header_id|>");
  {
    LogLines log;
    EXPECT_EQ(prompt_of(options, tokenizer), "own:q;");
    EXPECT_EQ(std::count(log.lines.begin(), log.lines.end(),
                         "warning: --template mine: the model's tokenizer has no token "
                         "\"<|start_header_id|>\"; the model's own chat template is used"),
              1);
  }
  write_file(dir_ / "given.jinja", "given:{% for m in messages %}{{ m.content }};{% endfor %}");
  options.named_template->marks.pop_back();
  options.chat_template = dir_ / "given.jinja";
  EXPECT_EQ(prompt_of(options, tokenizer), "given:q;");
}

TEST_F(TokenizerOfModel, NamesTheMembersThatAreNotRead) {
  write_file(
      dir_ / "data.json",
      "{\"src\": \"q\", \"tgt\": \"a\", \"source\": \"web\"}\n{\"src\": \"q\", \"tgt\": \"a\", \"id\": 1}\n");
  TuningDataOptions options;
  options.model = dir_ / "model";
  TokenizerConfig config;
  const RecordFiles records(options, ModelSource(options.model), files(config), 0);
  const std::string wanted =
      concat(dir_ / "data.json", ": members of its records that are not read: \"id\", \"source\"");
  LogLines log;
  records.examples({dir_ / "data.json"}, {});
  EXPECT_EQ(std::count(log.lines.begin(), log.lines.end(), wanted), 1);
}

// A FIFO or a folder in place of a file of records is refused, because nobody would write to the FIFO. A path
// that the user names is accepted.
TEST(DataFiles, OfAFolderAreRegularFiles) {
  namespace fs = std::filesystem;
  for (const std::string name : {"train.json", "train.jsonl", "dev.json", "dev.jsonl"}) {
    const TempDir dir;
    TuningDataOptions options;
    options.data = dir.path();
    write_file(dir / "train.jsonl", "{}");
    for (const bool folder : {false, true}) {
      fs::remove_all(dir / name);
      folder ? fs::create_directory(dir / name) : ::mkfifo((dir / name).c_str(), 0600) == 0;
      try {
        data_files(options, true);
        ADD_FAILURE() << name;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kNoInput);
        EXPECT_EQ(std::string(error.what()).find(dir / name + ": is not a regular file"), 0U) << error.what();
      }
    }
    options.eval_data = dir / "dev.json";
    fs::remove_all(dir / "train.json");
    write_file(dir / "train.json", "{}");
    EXPECT_EQ(name.starts_with("train") ? options.eval_data : data_files(options, true).dev.path,
              options.eval_data);
  }
}

}  // namespace
}  // namespace megalith::test
