#include "libcore/text/formats/hf_tokenizer.h"

#include "libcore/text/formats/hf_json.h"
#include "tests/text/fixtures.h"
#include "tests/text/read_twice.h"

namespace megalith {
namespace {

std::string hf_golden(const std::string& name) {
  return test::test_data("text/goldens/hf/" + name);
}

/// Goldens made with Hugging Face tokenizers: [text, ids, decoded text] (tools/golden/make_tokenizers.py).
class HfGoldens : public testing::TestWithParam<const char*> {};

TEST_P(HfGoldens, EncodesAndDecodesAsHuggingFace) {
  const std::string name = GetParam();
  const std::string path = hf_golden(name == "deepseek-v3" ? name : name + ".json");
  const auto tokenizer = read_hf_tokenizer(path);
  EXPECT_EQ(tokenizer->name(), "HuggingFaceTokenizer");
  const Json golden = Json::load(hf_golden(name + ".ids.json"));
  ASSERT_GT(golden.as_array().size(), 250u);
  test::TextsTogether together;
  for (const Json& entry : golden.as_array()) {
    const std::string& text = entry.as_array()[0].as_string();
    const std::vector<int32_t> wanted = test::ids_of(entry.as_array()[1]);
    EXPECT_EQ(test::encode(*tokenizer, text), wanted) << quote(text);
    EXPECT_EQ(tokenizer->decode(wanted), entry.as_array()[2].as_string()) << quote(text);
    IdBuffer buffer(sizeof(uint16_t));
    tokenizer->encode_to(text, buffer);
    EXPECT_EQ(buffer.ids(), wanted) << quote(text);
    std::vector<int32_t> pieces;
    tokenizer->encode_in_parts(
        text, [&](std::span<const int32_t> ids) { pieces.insert(pieces.end(), ids.begin(), ids.end()); });
    EXPECT_EQ(pieces, wanted) << quote(text);
    together.add(text, wanted, entry.as_array()[2].as_string());
  }
  together.expect(*tokenizer, name);
}

INSTANTIATE_TEST_SUITE_P(All, HfGoldens,
                         testing::Values("llama3", "qwen2", "qwen3.5", "o200k", "tekken", "deepseek-v3",
                                         "deepseek-llm", "deepseek-coder", "digits", "lacks-bytes",
                                         "unknown-bytes", "prefix-space", "falcon", "texts", "llama2",
                                         "gemma", "metaspace-first", "metaspace-always", "metaspace-never"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

TEST(HfTokenizer, IsTheSameFromTheKeptFile) {
  for (const std::string name :
       {"lacks-bytes", "unknown-bytes", "prefix-space", "falcon", "texts", "gemma", "llama2"}) {
    const auto [first, later] =
        test::read_twice(hf_golden(name + ".json"), std::string(300'000, ' '),
                         [](const std::string& path) { return read_hf_tokenizer(path); });
    const Json golden = Json::load(hf_golden(name + ".ids.json"));
    for (const Json& entry : golden.as_array())
      EXPECT_EQ(test::encode(*later, entry.as_array()[0].as_string()), test::ids_of(entry.as_array()[1]))
          << name << ": " << quote(entry.as_array()[0].as_string());
  }
}

// A blank in a token keeps the tokenizer from writing blanks for U+2581. No text has this token.
TEST(HfTokenizer, GivesTheSameIdsWhereATokenHasABlank) {
  for (const std::string name : {"llama2", "gemma"}) {
    std::string file = read_file(hf_golden(name + ".json"));
    const size_t vocab = file.find("\"vocab\":");
    ASSERT_NE(vocab, std::string::npos);
    file.insert(file.find('{', vocab) + 1, "\"no such\": 5000, ");
    const test::TempDir folder;
    test::write_quickly(folder / "tokenizer.json", file);
    const auto tokenizer = read_hf_tokenizer(folder / "tokenizer.json");
    EXPECT_EQ(tokenizer->vocab_size(), 5001);
    const Json golden = Json::load(hf_golden(name + ".ids.json"));
    for (const Json& entry : golden.as_array())
      EXPECT_EQ(test::encode(*tokenizer, entry.as_array()[0].as_string()), test::ids_of(entry.as_array()[1]))
          << name << ": " << quote(entry.as_array()[0].as_string());
  }
}

// The ids of the text are those of its parts in the golden, which Hugging Face gives.
TEST(HfTokenizer, DropsBytesWithoutATokenFromAGiant) {
  const auto tokenizer = read_hf_tokenizer(hf_golden("lacks-bytes.json"));
  const std::vector<int32_t> one = test::encode(*tokenizer, "a");
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "\u00e9";  // its first byte has no token, its second one has
  const std::vector<int32_t> two = test::encode(*tokenizer, "\u00e9");
  EXPECT_EQ(test::encode(*tokenizer, "!!!"), std::vector<int32_t>{});
  EXPECT_EQ(one.size(), 1u);
  EXPECT_EQ(two.size(), 1u);
  EXPECT_EQ(test::encode(*tokenizer, text), std::vector<int32_t>(200'000, two[0]));
}

TEST(HfTokenizer, LeavesOutSpecialTokensWhenAsked) {
  const auto with = read_hf_tokenizer(hf_golden("llama3.json"));
  const auto without = read_hf_tokenizer(hf_golden("llama3.json"), {.around = false});
  const std::vector<int32_t> ids = test::encode(*with, "The harbour.");
  ASSERT_EQ(with->decode(std::vector<int32_t>{ids[0]}), "<|begin_of_text|>");
  EXPECT_EQ(test::encode(*without, "The harbour."), std::vector<int32_t>(ids.begin() + 1, ids.end()));
  EXPECT_NE(with->hash(), without->hash());
}

TEST(HfTokenizer, FindsEndOfDocumentInTheConfigBesideIt) {
  const auto tokenizer = read_hf_tokenizer(hf_golden("deepseek-v3"));
  EXPECT_EQ(tokenizer->eod(), tokenizer->vocab_size() - 1);
}

TEST(HfTokenizer, RefusesToDecodeUnknownIds) {
  const auto tokenizer = read_hf_tokenizer(hf_golden("llama2.json"));
  for (const int32_t id : {-1, tokenizer->vocab_size()})
    test::expect_error(ErrorKind::kData, {concat("token id ", id)},
                       [&] { tokenizer->decode(std::vector<int32_t>{id}); });
}

TEST(HfTokenizer, EncodesALongTextAsItsParts) {
  for (const char* name : {"deepseek-v3/tokenizer.json", "deepseek-llm.json", "llama2.json", "qwen2.json"}) {
    const auto tokenizer = read_hf_tokenizer(hf_golden(name), {.around = false});
    const std::string part = "W\u00f6rter 12345 und \u65e5\u672c\u8a9e, so -- it's #5 ... fine";
    // All of these tokenizers cut before a blank that a letter follows.
    const std::vector<int32_t> first = test::encode(*tokenizer, part);
    const std::vector<int32_t> next = [&] {
      std::vector<int32_t> two = test::encode(*tokenizer, part + " " + part);
      return std::vector<int32_t>(two.begin() + static_cast<std::ptrdiff_t>(first.size()), two.end());
    }();
    std::string text = part;
    std::vector<int32_t> wanted = first;
    for (int i = 0; i < 3000; ++i) {
      text += " " + part;
      wanted.insert(wanted.end(), next.begin(), next.end());
    }
    EXPECT_EQ(test::encode(*tokenizer, text), wanted) << name;
  }
}

/// The golden's tokenizer with two more normalizer steps, which change nothing: these texts are in NFC and
/// have no "q". But NFC joins characters, and "q" is a letter, so a text has to be normalized as a whole.
std::unique_ptr<Tokenizer> normalizing_at_once(const test::TempDir& dir, const std::string& name) {
  Json json = Json::load(hf_golden(name));
  Json steps = Json::array();
  if (json.find("normalizer")->is_object()) steps.push_back(*json.find("normalizer"));
  steps.push_back(Json::parse(R"({"type":"NFC"})", "the first step"));
  steps.push_back(Json::parse(R"({"type":"Replace","pattern":{"String":"q"},"content":"-"})", "the second"));
  Json normalizer = Json::object();
  normalizer.set("type", "Sequence");
  normalizer.set("normalizers", std::move(steps));
  json.set("normalizer", std::move(normalizer));
  test::write_quickly(dir / "tokenizer.json", json.dump());
  return read_hf_tokenizer(dir / "tokenizer.json", {.around = true});
}

/// Words, blanks, marks, unknown characters and added tokens, each also repeated until it is a giant.
std::string long_text(std::mt19937& random) {
  static const std::vector<std::string> kKinds = {
      "a",          "he",   " ",  "  ",     "\xE2\x96\x81", "in", "\xE2\x96\x81 the", "r", "\xD0\xBB\xD0\xBE",
      "\U0001F600", "</s>", "\n", "\u65e5", "\xE2\x98\x83"};
  return test::text_with_giants(kKinds, random);
}

TEST(HfTokenizer, EncodesALongTextBitByBitAsAtOnce) {
  const test::TempDir dir;
  std::mt19937 random(21);
  for (const char* name :
       {"llama2.json", "metaspace-first.json", "metaspace-always.json", "metaspace-never.json",
        "../unigram/t5.json", "../unigram/xlmr.json", "../unigram/albert.json", "../unigram/mbart.json",
        "../unigram/first.json", "../unigram/whole_bytes.json"}) {
    const auto bits = read_hf_tokenizer(hf_golden(name));
    const auto at_once = normalizing_at_once(dir, name);
    const std::string texts[] = {std::string(1'500'000, ' '), std::string(1'500'000, 'a'), long_text(random)};
    for (const std::string& text : texts) {
      const std::vector<int32_t> wanted = test::encode(*at_once, text);
      EXPECT_TRUE(test::encode(*bits, text) == wanted) << name << ": " << quote(text.substr(0, 100));
      std::vector<int32_t> joined;
      bits->encode_in_parts(
          text, [&](std::span<const int32_t> ids) { joined.insert(joined.end(), ids.begin(), ids.end()); });
      EXPECT_TRUE(joined == wanted) << name;
      IdBuffer buffer(sizeof(uint16_t));
      bits->encode_to(text, buffer);
      EXPECT_TRUE(buffer.ids() == wanted);
    }
  }
}

}  // namespace
}  // namespace megalith
