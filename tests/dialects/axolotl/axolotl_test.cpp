#include "libcore/dialects/axolotl/axolotl.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/finetune/finetune_config.h"
#include "libcore/io/files/file.h"
#include "tests/support/fates.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

/// What becomes of a run file with these lines: our options ("key=words"), ignored keys and problems.
struct Translated {
  std::set<std::string> options, ignored;
  std::string problems;
};

Translated translate(const std::string& lines) {
  const test::TempDir dir;
  write_file(dir / "a.yml", "base_model: model\n" + lines);
  Problems problems;
  FileTranslation file{.options = read_config_file(dir / "a.yml"), .problems = problems, .knows = {}};
  translate_axolotl(file);
  Translated out{
      .options = {}, .ignored = {file.ignored.begin(), file.ignored.end()}, .problems = problems.text()};
  for (const FileOption& option : file.options)
    if (option.key != "base_model") out.options.insert(option.key + "=" + join(option.words, " "));
  return out;
}

using Names = std::set<std::string>;

TEST(Axolotl, HasOneRowForEachKey) {
  test::expect_one_row_for_each_name(axolotl_keys());
}

TEST(Axolotl, RenamesKeysToOptionsThatThereAre) {
  FinetuneConfig config;
  Options options("finetune", "Tune a model.");
  config.add_to(options);
  for (const AxolotlKey& key : axolotl_keys())
    if (*key.option != '\0') {
      EXPECT_NO_THROW(options.source(key.option)) << key.name;
    }
}

TEST(Axolotl, TranslatesValues) {
  EXPECT_EQ(translate("adapter: lora\nbf16: auto\nrl: dpo\nload_in_8bit: true\n").options,
            (Names{"lora=true", "bf16=true", "dpo=true", "qlora=true"}));
  EXPECT_EQ(translate("evals_per_epoch: 0\nsaves_per_epoch: 1\nlora_r: 8\n").options,
            (Names{"eval-strategy=no", "save-strategy=epoch", "lora_r=8"}));
  EXPECT_EQ(translate("evals_per_epoch: 4\nsaves_per_epoch: 2\n").options,
            (Names{"evals-per-epoch=4", "saves-per-epoch=2"}));
  EXPECT_EQ(translate("optimizer: adamw_8bit\nfsdp_config:\n").ignored, (Names{"optimizer", "fsdp_config"}));
  EXPECT_EQ(translate("chat_template: mine.jinja\n").options, Names{"chat_template=mine.jinja"});
  EXPECT_EQ(translate("lora_target_linear: True\nlora_target_modules: [q_proj]\n").options,
            Names{"target-modules=all-linear"});
}

TEST(Axolotl, NamesKeysAndValuesWithoutEffect) {
  const Translated file = translate(
      "wandb_project:\nspecial_tokens: {pad_token: x}\nbf16: False\noptimizer: adamw_hf\n"
      "chat_template: tokenizer_default\ntrain_on_inputs: no\ndatasets: [{path: d, type: sharegpt}]\n");
  EXPECT_EQ(file.ignored, (Names{"wandb_project", "special_tokens.pad_token", "bf16", "optimizer",
                                 "chat_template", "train_on_inputs", "datasets.type"}));
  EXPECT_EQ(file.options, Names{"data=d"});
  EXPECT_EQ(file.problems, "");
}

TEST(Axolotl, RefusesOtherValues) {
  for (const auto& [line, remedy] : {std::pair{"adapter: qlora", "give lora, with load_in_8bit: true"},
                                     {"bf16: half", "give true, false or auto"},
                                     {"rl: kto", "give dpo"},
                                     {"train_on_inputs: true", "give false: answers are learned"},
                                     {"load_in_4bit: true", "give load_in_8bit: true"},
                                     {"optimizer: lion_8bit", "give adamw_torch"}}) {
    const Translated file = translate(line);
    EXPECT_NE(file.problems.find(std::string(", which is not supported; ") + remedy), std::string::npos)
        << line << file.problems;
    EXPECT_TRUE(file.options.empty() && file.ignored.empty()) << line;
  }
}

}  // namespace
}  // namespace megalith
