#include "libcore/options/config_file.h"

#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/config/pretrain_config.h"
#include "libcore/io/files/file.h"
#include "tests/support/fates.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

/// The kind and the text of the Error thrown when this file is read.
std::pair<ErrorKind, std::string> refusal(const std::string& path) {
  try {
    read_config_file(path);
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {ErrorKind::kInternal, "nothing was refused"};
}

TEST(ConfigFile, FlattensMapsAndKeepsLines) {
  const test::TempDir folder;
  const std::string path = folder / "run.yaml";
  write_file(path,
             "# a run\nmodel:\n  num-layers: 12\n  deep:\n    hidden_size: \"768\"\nkeys: [a, 'b "
             "c']\nlist:\n  - 1\nnothing: ~\n");
  const auto options = read_config_file(path);
  ASSERT_EQ(options.size(), 5u);
  EXPECT_EQ(options[0].key, "num-layers");
  EXPECT_EQ(options[0].words, std::vector<std::string>{"12"});
  EXPECT_EQ(options[0].where, path + ":3");
  EXPECT_EQ(options[1].key, "hidden_size");
  EXPECT_EQ(options[1].words, std::vector<std::string>{"768"});
  EXPECT_EQ(options[1].where, path + ":5");
  EXPECT_EQ(options[2].words, (std::vector<std::string>{"a", "b c"}));
  EXPECT_EQ(options[3].words, std::vector<std::string>{"1"});
  EXPECT_EQ(options[3].where, path + ":7");
  EXPECT_TRUE(options[4].is_null);
}

TEST(ConfigFile, ReadsJsonAndEmptyFiles) {
  const test::TempDir folder;
  write_file(folder / "a.json", "{\"model\": {\"num_layers\": 12}, \"lr\": 1e-4}");
  EXPECT_EQ(read_config_file(folder / "a.json").size(), 2u);
  write_file(folder / "b.yaml", "");
  EXPECT_TRUE(read_config_file(folder / "b.yaml").empty());
  write_file(folder / "c.yaml", "# only this\n");
  EXPECT_TRUE(read_config_file(folder / "c.yaml").empty());
}

TEST(ConfigFile, RefusesWhatIsNoMapOfOptions) {
  const test::TempDir folder;
  const std::string path = folder / "run.yaml";
  const auto refused = [&](const std::string& text) {
    write_file(path, text);
    const auto [kind, message] = refusal(path);
    EXPECT_EQ(kind, ErrorKind::kData) << text;
    return message;
  };
  EXPECT_EQ(refused("num-layers: 1\nkeys: [a\n"), path + ":3:1: end of sequence flow not found; wanted YAML");
  EXPECT_EQ(refused("- 1\n"), path + ":1: wanted a map of options, such as \"num-layers: 12\"");
  EXPECT_EQ(refused("x:\n  - [1, 2]\n"), path + ":2: wanted a word in the list of \"x\"");
  EXPECT_EQ(refused("[a]: 1\n"), path + ":1: wanted the name of an option before the \":\"");
  EXPECT_EQ(refused("a: &b\n  c: *b\n"), path + ":1: maps are nested more than 32 deep");
  EXPECT_EQ(refusal(folder / "none.yaml").first, ErrorKind::kNoInput);
}

/// The message of check() about a pretraining run with this config file.
std::string complaint(const std::string& path, const std::vector<std::string>& more = {}) {
  PretrainConfig config;
  Options options("pretrain", "Train.");
  config.add_to(options);
  std::vector<std::string> arguments = {"--config", path};
  arguments.insert(arguments.end(), more.begin(), more.end());
  EXPECT_FALSE(options.read(arguments));
  try {
    options.check();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return {};
}

constexpr const char* kRun =
    "num-layers: 2\nhidden-size: 64\nnum_attention_heads: 4\nseq-length: 16\nmicro-batch-size: "
    "2\ntrain-iters: 10\nlr: 1e-3\n";

TEST(ConfigFile, ComplaintsNameFileAndLine) {
  const test::TempDir folder;
  const std::string path = folder / "run.yaml";
  write_file(path, kRun);
  EXPECT_EQ(complaint(path), "");
  write_file(path, std::string(kRun) +
                       "num-layer: 3\nlr-decay-style: cosin\nsplit: [9, 1]\nno-load-optim: perhaps\nlr: "
                       "2e-3\nconfig: x\n");
  EXPECT_EQ(complaint(path),
            path + ":8: unknown option \"num-layer\"; did you mean \"num-layers\"?\n  " +  //
                path +
                ":9: lr-decay-style \"cosin\": wanted one of constant, linear, cosine, WSD; did you mean "
                "\"cosine\"?\n  " +
                path + ":10: split \"9 1\": wanted one value\n  " +  //
                path + ":11: no-load-optim \"perhaps\": wanted true or false\n  " + path +
                ":12: \"lr\" is already set at " + path + ":7\n  " +  //
                path + ":13: \"config\" belongs on the command line");
}

TEST(ConfigFile, YieldsToTheCommandLine) {
  const test::TempDir folder;
  write_file(folder / "run.yaml",
             std::string(kRun) + "no-load-optim: True\ntransformer-impl: local\nsave: ~\n");
  PretrainConfig config;
  Options options("pretrain", "Train.");
  config.add_to(options);
  constexpr OptionFate kFates[] = {{.name = "transformer-impl", .values = OptionFate::kOne}};
  options.fates(test::maker(kFates));
  ASSERT_FALSE(options.read({"--num-layers", "3", "--config", folder / "run.yaml"}));
  options.check();
  EXPECT_EQ(config.model.layers, 3);
  EXPECT_EQ(config.model.heads, 4);
  EXPECT_FALSE(config.checkpoint.load_optim);
}

// Such files are refused because they would need 250 bytes of memory per byte, or because each anchor would
// double the time.
TEST(ConfigFile, IsRefusedWhenItHoldsMoreThanSettings) {
  const test::TempDir folder;
  const std::string path = folder / "run.yaml";
  const auto complaint = [&](const std::string& text) {
    write_file(path, text);
    const auto [kind, message] = refusal(path);
    EXPECT_EQ(kind, ErrorKind::kData) << message;
    return message;
  };
  EXPECT_NE(complaint("a: " + std::string(4 << 20, 'x')).find("wanted at most 4194304"), std::string::npos);
  const std::string many = path + ": has more than 262144 keys and values";
  std::string list = "k: [0", keys, anchors = "a0: &a0 {x: 1, y: 2}\n", words = "w: &w " + std::string("[1");
  for (int i = 0; i < 300000; ++i) list += ",0";
  for (int i = 0; i < 140000; ++i) keys += concat("k", i, ": 1\n");
  for (int i = 1; i < 31; ++i)
    anchors += concat("a", i, ": &a", i, " {p: *a", i - 1, ", q: *a", i - 1, "}\n");
  for (int i = 0; i < 1000; ++i) words += ",2";
  words += "]\n";
  for (int i = 0; i < 1000; ++i) words += concat("k", i, ": *w\n");
  for (const std::string& text : {list + "]\n", keys, anchors, words})
    EXPECT_EQ(complaint(text).find(many), 0U);
  write_file(path, keys.substr(0, keys.size() / 2));
  EXPECT_GT(read_config_file(path).size(), 60000U);
}

TEST(ConfigFile, SurvivesDamage) {  // the test ends by a crash unless every outcome is a value or an Error
  const test::TempDir folder;
  const std::string path = folder / "run.yaml";
  const std::string good =
      std::string(kRun) + "model: {a: [1, 2], b: &x {c: d}}\nother: *x\ntext: |\n  lines\n  more\n";
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    std::string text = good.substr(0, random() % (good.size() + 1));
    for (size_t i = random() % 4; i-- > 0 && !text.empty();)
      text[random() % text.size()] = static_cast<char>(random());
    std::ofstream(path) << text;
    try {
      read_config_file(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      ++refused;
    }
  }
  EXPECT_GT(refused, 50);
  write_file(path, std::string(100000, '['));
  EXPECT_EQ(refusal(path).first, ErrorKind::kData);
  write_file(path, std::string(100000, '{'));
  EXPECT_EQ(refusal(path).first, ErrorKind::kData);
}

}  // namespace
}  // namespace megalith
