#include "libcore/text/formats/tiktoken_files.h"

#include <algorithm>

#include "libcore/io/files/file.h"
#include "tests/text/fixtures.h"
#include "tests/text/read_twice.h"

namespace megalith {
namespace {

constexpr int kTokens = 420;  // tokens in the files

std::string ranks(const char* name) {
  return test::test_data(std::string("text/goldens/hf/") + name);
}

ByteLevelTokenizer read(const std::string& path, const std::string& pattern = "v2") {
  return ByteLevelTokenizer(
      read_tiktoken(path, {.pattern = pattern, .special_tokens = 20, .vocab_size = kTokens + 20}));
}

TEST(TikToken, EncodesAndDecodesAsMegatron) {
  for (const char* name : {"ranks.json", "ranks.tiktoken"}) {
    const ByteLevelTokenizer v1 = read(ranks(name), "v1"), v2 = read(ranks(name), "v2");
    EXPECT_EQ(v1.name(), "TikTokenizer");
    EXPECT_EQ(v1.eod(), 2);
    EXPECT_EQ(v1.vocab_size(), kTokens + 20);
    const Json golden = Json::load(ranks("ranks.ids.json"));
    ASSERT_GT(golden.as_array().size(), 500u);
    for (const Json& entry : golden.as_array()) {
      const ByteLevelTokenizer& tokenizer = entry.as_array()[0].as_string() == "v1" ? v1 : v2;
      const std::vector<int32_t> wanted = test::ids_of(entry.as_array()[2]);
      EXPECT_EQ(test::encode(tokenizer, entry.as_array()[1].as_string()), wanted) << entry.dump();
      EXPECT_EQ(tokenizer.decode(wanted), entry.as_array()[3].as_string());
    }
  }
}

// Made by mistral-common 1.13.1 (tools/golden/make_tokenizers.py).
TEST(TikToken, ReadsAShippedTekkenAsMistral) {
  const auto read_one = [](const std::string& path) { return make_tiktoken_tokenizer(path, {}); };
  const std::string path = ranks("shipped-tekken.json");
  const auto [first, later] = test::read_twice(path, std::string(300'000, ' '), read_one);
  EXPECT_EQ(first->eod(), 2);
  EXPECT_EQ(first->vocab_size(), kTokens + 4);
  EXPECT_EQ(first->decode(std::vector<int32_t>{3, 11, 't' + 12}), "[INST]<SPECIAL_11>t");
  const Json golden = Json::load(ranks("shipped-tekken.ids.json"));
  ASSERT_GT(golden.as_array().size(), 250u);
  for (const Json& entry : golden.as_array()) {
    const std::string& text = entry.as_array()[0].as_string();
    const std::vector<int32_t> wanted = test::ids_of(entry.as_array()[1]);
    EXPECT_EQ(test::encode(*first, text), wanted) << quote(text);
    EXPECT_EQ(test::encode(*later, text), wanted) << quote(text);
  }
}

// The pattern is not kept. It is also found where "config" is not among the first bytes.
TEST(TikToken, OfAKeptTekkenSplitsAsTheRestOfItsFileSays) {
  const test::TempDir dir;
  const Json shipped = Json::load(ranks("shipped-tekken.json"));
  Json::Object parts = shipped.as_object();
  std::reverse(parts.begin(), parts.end());
  ASSERT_EQ(parts.back().first, "config");
  write_file(dir / "last.json", Json(parts).dump());
  write_file(dir / "blanks.json", std::string(100'000, ' ') + Json(parts).dump());
  const auto read_one = [](const std::string& path) { return make_tiktoken_tokenizer(path, {}); };
  const Json golden = Json::load(ranks("shipped-tekken.ids.json"));
  for (const char* file : {"last.json", "blanks.json"}) {
    const auto [first, later] = test::read_twice(dir / file, std::string(300'000, ' '), read_one);
    for (const Json& entry : golden.as_array())
      EXPECT_EQ(test::encode(*later, entry.as_array()[0].as_string()), test::ids_of(entry.as_array()[1]));
  }
}

TEST(TikToken, NamesWhatATekkenLacks) {
  const test::TempDir dir;
  const std::string good = read_file(ranks("shipped-tekken.json"));
  const auto bad = [&](const std::string& from, const std::string& to,
                       const std::vector<std::string>& parts) {
    std::string contents = good;
    const size_t at = contents.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_file(dir / "tekken.json", contents.replace(at, from.size(), to));
    test::expect_error(ErrorKind::kData, parts, [&] { read_tiktoken(dir / "tekken.json", {}); });
  };
  bad("\"config\"", "\"confit\"", {"no config"});
  bad("\"default_vocab_size\":424", "\"default_vocab_size\":440", {"vocab has 420", "428"});
  bad("\"default_vocab_size\":424", "\"default_vocab_size\":267", {"default_vocab_size is 267", "256 bytes"});
  bad("\"default_num_special_tokens\":12", "\"default_num_special_tokens\":4", {"at least 5"});
  bad("{\"rank\":1,\"token_str\"", "{\"rank\":2,\"token_str\"", {"special_tokens[1].rank is 2", "up by one"});
  bad("\"pattern\":\"", "\"pattern\":\"(?<=a)", {"its pattern has the group"});
  bad("\"pattern\":\"", "\"pattern\":\"a\",\"other\":\"", {"matches that leave out text"});
  test::expect_error(ErrorKind::kUsage, {"--tokenizer-special-tokens"},
                     [&] { read_tiktoken(ranks("shipped-tekken.json"), {.special = {"<x>"}}); });
}

TEST(TikToken, TakesTheFirstTokensOfAFile) {
  const ByteLevelTokenizer tokenizer(
      read_tiktoken(ranks("ranks.json"), {.pattern = "v2", .special_tokens = 7, .vocab_size = 7 + 256}));
  EXPECT_EQ(tokenizer.vocab_size(), 263);
  EXPECT_EQ(test::encode(tokenizer, "the</s>"), (std::vector<int32_t>{'t' + 7, 'h' + 7, 'e' + 7, 2}));
}

TEST(TikToken, TakesOtherSpecialTokensAsMegatron) {
  const std::vector<std::string> names = {"<|user|>", "<unk>", "</s>",  "<s>",
                                          "<mask>",   "<pad>", "<cls>", "<sep>"};
  const ByteLevelTokenizer tokenizer(
      read_tiktoken(ranks("ranks.json"),
                    {.pattern = "v2", .special_tokens = 10, .vocab_size = 10 + 256, .special = names}));
  EXPECT_EQ(tokenizer.eod(), 2);
  EXPECT_EQ(test::encode(tokenizer, "<|user|>t<SPECIAL_9><SPECIAL_8><unk></s>"),
            (std::vector<int32_t>{0, 't' + 10, 9, 8, 1, 2}));
  const auto reading = [&](std::vector<std::string> special, int count) {
    return [=] {
      read_tiktoken(ranks("ranks.json"), {.special_tokens = count, .vocab_size = 300, .special = special});
    };
  };
  test::expect_error(ErrorKind::kUsage, {"--tokenizer-special-tokens has no \"<unk>\"", "<unk> <s> </s>"},
                     reading({"<|user|>"}, 10));
  test::expect_error(ErrorKind::kUsage, {"--tiktoken-num-special-tokens 7", "at least 8"}, reading(names, 7));
  std::vector<std::string> twice = names;
  twice.push_back("<s>");
  test::expect_error(ErrorKind::kUsage, {"\"<s>\" appears twice"}, reading(twice, 20));
  twice.back() = "<SPECIAL_9>";  // the name of number 9, given to number 8
  test::expect_error(ErrorKind::kUsage, {"\"<SPECIAL_9>\" appears twice"}, reading(twice, 20));
}

TEST(TikToken, NamesWhatDoesNotFit) {
  const auto reading = [&](const std::string& path, TikTokenSettings settings) {
    return [=] { read_tiktoken(path, settings); };
  };
  const std::string json = ranks("ranks.json");
  test::expect_error(ErrorKind::kUsage, {"--tiktoken-pattern \"v3\"", "v1 or v2"},
                     reading(json, {.pattern = "v3", .vocab_size = 1420}));
  test::expect_error(ErrorKind::kUsage, {"--tiktoken-num-special-tokens 6", "at least 7"},
                     reading(json, {.special_tokens = 6}));
  test::expect_error(ErrorKind::kUsage, {"--vocab-size 1200", "1000"}, reading(json, {.vocab_size = 1200}));
  test::expect_error(ErrorKind::kData, {"ranks.json", "420 tokens", "--vocab-size 1420"}, reading(json, {}));
  test::expect_error(ErrorKind::kNoInput, {"none.json"}, reading("none.json", {}));
  const test::TempDir dir;
  const auto bad = [&](const std::string& contents, const std::vector<std::string>& parts) {
    test::write_quickly(dir / "bad", contents);
    test::expect_error(ErrorKind::kData, parts, reading(dir / "bad", {}));
  };
  bad("[{\"rank\": 1, \"token_bytes\": \"AA==\"}]", {"token 0", "rank 1, wanted 0"});
  bad("[{\"rank\": 0, \"token_bytes\": \"AQ==\"}]", {"token 0", "not byte 0"});
  bad("[{\"rank\": 0, \"token_bytes\": \"A\"}]", {"token 0", "base64"});
  bad("[7]", {"token 0 is 7"});
  bad("[{}", {"not valid JSON"});
  bad("QQ==\n", {"bad:1", "\"QQ==\"", "its rank"});
  bad("QQ== 0\n\nQg== 2\n", {"bad:3", "wanted 1"});
  bad("QQ== 0\nQQ== 1\n", {"appears twice"});
  bad("QQ== 0\n", {"no token for byte 0"});
  bad("", {"no token for byte 0"});
}

TEST(TikToken, IsSafeToReadWhenDamaged) {
  const test::TempDir dir;
  for (const char* name : {"ranks.json", "ranks.tiktoken"})
    test::damage(read_file(ranks(name)), [&](const std::string& text) {
      test::write_quickly(dir / "bad", text);
      test::encode(read(dir / "bad"), "The harbour's books.");
    });
}

}  // namespace
}  // namespace megalith
