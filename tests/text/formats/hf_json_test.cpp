#include "libcore/text/formats/hf_json.h"

#include <algorithm>
#include <filesystem>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/log_lines.h"
#include "tests/text/fixtures.h"

namespace megalith {
namespace {

using test::encode;
using test::expect_error;

/// A tokenizer.json that a test may change.
class HfJson : public testing::Test {
 protected:
  HfJson() : root_(Json::load(test::trained("tokenizer.json"))) {}

  static Json& member(Json& object, std::string_view key) {
    for (auto& [name, value] : object.as_object())
      if (name == key) return value;
    throw std::out_of_range(std::string(key));
  }
  Json& model() { return member(root_, "model"); }
  Json& added() { return member(root_, "added_tokens"); }
  Json token(const char* text, int id) {
    return Json::Object{{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
                        {"rstrip", false}, {"normalized", false}, {"special", true}};
  }

  std::unique_ptr<Tokenizer> read() {
    test::write_quickly(dir_ / "tokenizer.json", root_.dump());
    return read_hf_tokenizer(dir_.path().string());
  }
  void expect_refusal(const std::vector<std::string>& parts) {
    expect_error(ErrorKind::kData, parts, [&] { read(); });
  }

  test::TempDir dir_;
  Json root_;
};

TEST_F(HfJson, MayWriteMergesAsOneStringEach) {
  const std::vector<int32_t> wanted = encode(*read(), "They've kept the harbour's books.");
  for (Json& merge : member(model(), "merges").as_array())
    merge = Json(merge.as_array()[0].as_string() + " " + merge.as_array()[1].as_string());
  EXPECT_EQ(encode(*read(), "They've kept the harbour's books."), wanted);
}

TEST_F(HfJson, FindsAddedTokensBeforeAnythingElse) {
  added().push_back(token("<|user|>", 700));
  added().push_back(token("<|user|>!", 701));
  member(added().as_array()[0], "normalized") = Json(true);  // so it is found after the others
  const auto tokenizer = read();
  EXPECT_EQ(tokenizer->vocab_size(), 702);
  EXPECT_EQ(encode(*tokenizer, "<|user|><|user|>!<|endoftext|>"), (std::vector<int32_t>{700, 701, 0}));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{700, 0, 701}), "<|user|><|endoftext|><|user|>!");
}

TEST_F(HfJson, StripsAroundAddedTokensThatAskForIt) {
  added().push_back(token("<mask>", 700));
  member(added().as_array()[1], "lstrip") = Json(true);
  EXPECT_EQ(encode(*read(), "\n <mask>"), std::vector<int32_t>{700});
  member(added().as_array()[1], "rstrip") = Json(true);
  EXPECT_EQ(encode(*read(), " <mask> \t"), std::vector<int32_t>{700});
}

TEST_F(HfJson, TakesTheEndOfADocumentFromTheConfig) {
  added().push_back(token("</s>", 700));
  write_file(dir_ / "tokenizer_config.json", R"({"eos_token": "</s>"})");
  EXPECT_EQ(read()->eod(), 700);
  write_file(dir_ / "tokenizer_config.json", R"({"eos_token": {"content": "</s>", "lstrip": false}})");
  EXPECT_EQ(read()->eod(), 700);
  write_file(dir_ / "tokenizer_config.json", R"({"eos_token": null})");
  EXPECT_EQ(read()->eod(), 0);
  write_file(dir_ / "tokenizer_config.json", R"({"eos_token": "<none>"})");
  expect_error(ErrorKind::kData, {"end-of-document"}, [&] { read()->eod(); });
}

TEST_F(HfJson, PutsATemplateAroundATextAndTemplatesAroundEachOther) {
  const Json text = Json::Object{{"Sequence", Json::Object{{"id", "A"}, {"type_id", 0}}}};
  const auto token = [](const char* name) {
    return Json::Object{{"SpecialToken", Json::Object{{"id", name}, {"type_id", 0}}}};
  };
  const Json ids = Json::Object{{"<a>", Json::Object{{"ids", Json::Array{7, 8}}}},
                                {"<b>", Json::Object{{"ids", Json::Array{9}}}}};
  const auto around = [&](Json::Array single) {
    return Json::Object{
        {"type", "TemplateProcessing"}, {"single", std::move(single)}, {"special_tokens", ids}};
  };
  const std::vector<int32_t> plain = encode(*read(), "harbour");
  root_.set("post_processor", around({text}));
  EXPECT_EQ(encode(*read(), "harbour"), plain);
  const Json bert =
      Json::Object{{"type", "BertProcessing"}, {"sep", Json::Array{"x", 6}}, {"cls", Json::Array{"y", 5}}};
  root_.set("post_processor",
            Json::Object{{"type", "Sequence"},
                         {"processors", Json::Array{around({token("<a>"), text, token("<b>")}), bert}}});
  std::vector<int32_t> wanted = {5, 7, 8};
  wanted.insert(wanted.end(), plain.begin(), plain.end());
  wanted.insert(wanted.end(), {9, 6});
  EXPECT_EQ(encode(*read(), "harbour"), wanted);
  const Json good = root_;
  for (Json bad : {around({}), around({text, text}), around({token("<c>"), text})}) {
    root_ = good;
    root_.set("post_processor", std::move(bad));
    expect_refusal({"post_processor."});
  }
}

// Words without the white space between them, which is in no pretoken.
TEST_F(HfJson, CutsATextAsAWholeWhereAStageRemovesSomething) {
  const auto plain = read();
  const Json bytes = Json::Object{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  root_.set("pre_tokenizer",
            Json::Object{{"type", "Sequence"},
                         {"pretokenizers", Json::Array{Json::Object{{"type", "WhitespaceSplit"}}, bytes}}});
  const auto words = read();
  std::string text;
  std::vector<int32_t> wanted;
  for (int i = 0; i < 60'000; ++i) {
    const char* const word = i % 3 == 0 ? "They" : i % 3 == 1 ? "kept" : "<|endoftext|>";
    text += std::string(i % 7, ' ') + word + (i % 2 == 0 ? "\n" : "\u3000");
    const std::vector<int32_t> ids = encode(*plain, word);
    wanted.insert(wanted.end(), ids.begin(), ids.end());
  }
  EXPECT_TRUE(encode(*words, text) == wanted);
  std::vector<int32_t> joined;
  words->encode_in_parts(
      text, [&](std::span<const int32_t> ids) { joined.insert(joined.end(), ids.begin(), ids.end()); });
  EXPECT_TRUE(joined == wanted);
  EXPECT_EQ(encode(*words, " \n"), std::vector<int32_t>());
  EXPECT_NE(words->hash(), plain->hash());
}

// A match may lie anywhere in a long text, which is therefore normalized as a whole.
TEST_F(HfJson, ReplacesTheMatchesOfAnExpression) {
  const auto plain = read();
  root_.set("normalizer",
            Json::Object{
                {"type", "Replace"}, {"pattern", Json::Object{{"Regex", "[0-9]+ ?"}}}, {"content", "the "}});
  const auto replacing = read();
  EXPECT_EQ(encode(*replacing, "1 books, 22harbours<|endoftext|>3"),
            encode(*plain, "the books, the harbours<|endoftext|>the "));
  EXPECT_NE(replacing->hash(), plain->hash());
  std::string digits, words;
  for (int i = 0; i < 300'000; ++i) {
    digits += i % 2 == 0 ? "12345 " : "678 and ";
    words += i % 2 == 0 ? "the " : "the and ";
  }
  EXPECT_TRUE(encode(*replacing, digits) == encode(*plain, words));
}

TEST_F(HfJson, RefusesByNameWhatItCannotDo) {
  const Json good = root_;
  const auto with = [&](const char* key, Json value, const std::vector<std::string>& parts) {
    root_ = good;
    root_.set(key, std::move(value));
    expect_refusal(parts);
  };
  const auto split = [](Json pattern, const char* behavior, bool invert) {
    return Json::Object{
        {"type", "Split"}, {"pattern", std::move(pattern)}, {"behavior", behavior}, {"invert", invert}};
  };
  with("normalizer", Json::Object{{"type", "Prefix"}},
       {"normalizer is ", "Prefix", "not supported", "wanted NFC"});
  with("normalizer",
       Json::Object{{"type", "Sequence"}, {"normalizers", Json::Array{Json::Object{{"type", "ByteLevel"}}}}},
       {"normalizer.normalizers[0] is ", "ByteLevel"});
  with("normalizer", Json::Object{{"type", "Strip"}, {"strip_left", true}}, {"normalizer.strip_right"});
  with("normalizer", Json::Object{{"type", "Precompiled"}, {"precompiled_charsmap", "?"}},
       {"normalizer.precompiled_charsmap is \"?\"", "base64"});
  with("normalizer", Json::Object{{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}},
       {"charsmap of its normalizer is damaged"});
  with("normalizer",
       Json::Object{{"type", "Replace"}, {"pattern", Json::Object{{"Regex", "(?<=a"}}}, {"content", "b"}},
       {"normalizer.pattern.Regex is \"(?<=a\"", "Oniguruma"});
  with("pre_tokenizer", Json::Object{{"type", "UnicodeScripts"}}, {"pre_tokenizer is ", "WhitespaceSplit"});
  const auto sequence = [](Json::Array stages) {
    return Json::Object{{"type", "Sequence"}, {"pretokenizers", std::move(stages)}};
  };
  const Json byte_level = Json::Object{{"type", "ByteLevel"}, {"add_prefix_space", false}};
  with("pre_tokenizer", sequence({byte_level, Json::Object{{"type", "Punctuation"}}}),
       {"pre_tokenizer.pretokenizers[1] is ", "Split or Digits after ByteLevel"});
  with("pre_tokenizer", sequence({byte_level, split(Json::Object{{"String", "a"}}, "Isolated", false)}),
       {"pre_tokenizer.pretokenizers[1].pattern is ", "after ByteLevel"});
  with("pre_tokenizer", Json::Object{{"type", "Punctuation"}, {"behavior", "Sideways"}},
       {"pre_tokenizer is ", "\"MergedWithNext\""});
  with("pre_tokenizer", sequence({split(Json::Object{{"Regex", "(?<=a"}}, "Isolated", false)}),
       {"pre_tokenizer.pretokenizers[0].pattern.Regex is \"(?<=a\"", "Oniguruma"});
  for (const char* kind : {"String", "Regex"})
    with("pre_tokenizer", split(Json::Object{{kind, "a"}}, "Sideways", true),
         {"pre_tokenizer is ", "\"behavior\": \"Isolated\""});
  with("pre_tokenizer", Json::Object{{"type", "CharDelimiterSplit"}, {"delimiter", "ab"}},
       {"pre_tokenizer.delimiter is \"ab\"", "one character"});
  with("post_processor", Json::Object{{"type", "Unheard"}}, {"post_processor is ", "Unheard"});
  with("decoder", Json::Object{{"type", "CTC"}}, {"decoder is ", "CTC"});
  with("added_tokens", Json::object(), {"added_tokens is {}", "a list"});
  const auto with_model = [&](const char* key, Json value, const std::vector<std::string>& parts) {
    root_ = good;
    model().set(key, std::move(value));
    expect_refusal(parts);
  };
  with_model("type", "WordLevel", {"model.type", "WordLevel"});
  with_model("dropout", 0.1, {"model.dropout", "0.1"});
  with_model("continuing_subword_prefix", "##", {"model.continuing_subword_prefix", "##"});
  with_model("end_of_word_suffix", "</w>", {"model.end_of_word_suffix", "</w>"});
  with_model("ignore_merges", 1, {"model.ignore_merges", "true or false"});
  with_model("merges", "a b", {"model.merges"});
  with_model("merges", Json::Array{"a b c"}, {"model.merges[0]", "a b c"});
  with_model("merges", Json::Array(1, Json::Array{"a", 1}), {"model.merges[0]", "two tokens"});
  with_model("vocab", Json::array(), {"tokenizer.json", "not an object"});
  root_ = good;
  root_.set("pre_tokenizer", nullptr);
  model().set("unk_token", "<none>");
  expect_refusal({"model.unk_token is \"<none>\""});
}

TEST_F(HfJson, RefusesByNameWhatItCannotDoWithAUnigramModel) {
  const Json good = Json::load(test::test_data("text/goldens/unigram/deberta.json"));
  const auto with_model = [&](const char* key, Json value, const std::vector<std::string>& parts) {
    root_ = good;
    model().set(key, std::move(value));
    expect_refusal(parts);
  };
  with_model("unk_id", nullptr, {"model.unk_id is null", "the id of a token"});
  with_model("unk_id", 1'000'000, {"model.unk_id is 1000000"});
  with_model("vocab", Json::object(), {"model.vocab is {}", "a list"});
  with_model("vocab", Json::Array(1, Json::Array{"a", "b"}), {"model.vocab[0] is ", "[token, score]"});
  with_model("vocab", Json::Array{Json::Array{"a", 0}, Json::Array{"a", 1}}, {"\"a\" appears twice"});
  with_model("merges", Json::array(), {"model", "merges"});
  const auto with_pre_tokenizer = [&](const Json& value, const std::vector<std::string>& parts) {
    root_ = good;
    root_.set("pre_tokenizer", value);
    expect_refusal(parts);
  };
  with_pre_tokenizer(Json::Object{{"type", "ByteLevel"}, {"add_prefix_space", false}},
                     {"pre_tokenizer is ", "with a Unigram model"});
  const auto metaspace = [](const char* scheme) {
    return Json::Object{
        {"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", scheme}, {"split", true}};
  };
  const std::vector<std::string> removes = {"pre_tokenizer is ",
                                            "after a normalizer that removes characters"};
  with_pre_tokenizer(metaspace("first"), removes);
  for (const bool clean : {true, false}) {
    root_ = good;
    root_.set("normalizer", Json::Object{{"type", "BertNormalizer"},
                                         {"clean_text", clean},
                                         {"handle_chinese_chars", false},
                                         {"strip_accents", !clean},
                                         {"lowercase", false}});
    root_.set("pre_tokenizer", metaspace("first"));
    expect_refusal(removes);
  }
  // tokenizers 0.23.3 puts no mark before what replaces more than one character.
  for (const auto& [kind, pattern] :
       {std::pair("String", "ab"), std::pair("Regex", "[0-9]+"), std::pair("Regex", " {2,}")}) {
    root_ = good;
    root_.set(
        "normalizer",
        Json::Object{{"type", "Replace"}, {"pattern", Json::Object{{kind, pattern}}}, {"content", "x"}});
    root_.set("pre_tokenizer", metaspace("first"));
    expect_refusal(removes);
  }
  with_pre_tokenizer(Json::Object{{"type", "Sequence"},
                                  {"pretokenizers", Json::Array{Json::Object{{"type", "WhitespaceSplit"}},
                                                                metaspace("never")}}},
                     {"pre_tokenizer.pretokenizers[1] is ", "after WhitespaceSplit"});
  with_pre_tokenizer(Json::Object{{"type", "WhitespaceSplit"}},
                     {"pre_tokenizer is ", "with a Unigram model"});
}

TEST_F(HfJson, RefusesByNameWhatItCannotDoWithAWordPieceModel) {
  const Json good = Json::load(test::test_data("text/goldens/wordpiece/uncased.json"));
  const auto with_model = [&](const char* key, Json value, const std::vector<std::string>& parts) {
    root_ = good;
    model().set(key, std::move(value));
    expect_refusal(parts);
  };
  with_model("unk_token", "<none>", {"model.unk_token is \"<none>\"", "a token of the vocabulary"});
  with_model("max_input_chars_per_word", -1, {"model.max_input_chars_per_word is -1"});
  with_model("continuing_subword_prefix", 1, {"model.continuing_subword_prefix is 1"});
  with_model("merges", Json::array(), {"model", "merges"});
  const auto with_pre_tokenizer = [&](const Json& value, const std::vector<std::string>& parts) {
    root_ = good;
    root_.set("pre_tokenizer", value);
    expect_refusal(parts);
  };
  with_pre_tokenizer(Json::Object{{"type", "ByteLevel"}}, {"pre_tokenizer is ", "with a WordPiece model"});
  with_pre_tokenizer(Json::Object{{"type", "Punctuation"}, {"behavior", "Removed"}},
                     {"pre_tokenizer is ", "\"Contiguous\""});
}

// Hugging Face ignores unknown members, so a misspelt name would change ids silently.
TEST_F(HfJson, RefusesMembersThatItDoesNotKnow) {
  const Json good = root_;
  for (Json* const object : {&root_, &model()})
    for (size_t i = 0; i < object->as_object().size(); ++i) {
      const Json::Member kept = object->as_object()[i];
      object->as_object()[i].first += "s";
      expect_refusal({quote(kept.first + "s"), "not known"});
      object->as_object()[i] = kept;
    }
  EXPECT_EQ(root_, good);
  root_.set("nothing", nullptr);
  expect_refusal({"the file has a member \"nothing\""});
}

// The ids are those that tokenizers 0.23.3 gives for such files.
TEST_F(HfJson, NumbersAddedTokensAsHuggingFaceAndSaysSo) {
  const test::LogLines log;
  added().push_back(token("<|user|>", 705));
  added().push_back(token("<|bot|>", 709));
  EXPECT_EQ(encode(*read(), "<|user|><|bot|>"), (std::vector<int32_t>{700, 701}));
  ASSERT_EQ(log.lines.size(), 1U);
  for (const char* part : {"\"<|user|>\" has id 705", "takes 700", "1 more"})
    EXPECT_NE(log.lines[0].find(part), std::string::npos) << log.lines[0];
  member(added().as_array()[0], "id") = Json(3);
  EXPECT_EQ(encode(*read(), "<|endoftext|>"), std::vector<int32_t>{0});
}

TEST_F(HfJson, MayLeaveIdsOut) {
  const std::vector<int32_t> ids = encode(*read(), "harbour!");
  for (auto& [text, id] : member(model(), "vocab").as_object())
    if (text == "!") id = Json(800);
  added().push_back(token("<|user|>", 700));  // the next id is the number of tokens, whatever their ids are
  const auto tokenizer = read();
  std::vector<int32_t> wanted = ids;
  std::replace(wanted.begin(), wanted.end(), 1, 800);
  wanted.push_back(700);
  EXPECT_EQ(encode(*tokenizer, "harbour!<|user|>"), wanted);
  EXPECT_EQ(tokenizer->vocab_size(), 801);
  EXPECT_EQ(tokenizer->decode(wanted), "harbour!<|user|>");
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{1}), "");
  added().push_back(token("!", 800));
  added().push_back(token("<|bot|>", 801));  // after the largest added id
  EXPECT_EQ(encode(*read(), "<|bot|>!"), (std::vector<int32_t>{801, 800}));
}

TEST_F(HfJson, RefusesAddedTokensThatTakeAnothersPlace) {
  const Json good = root_;
  for (auto& [text, id] : member(model(), "vocab").as_object())
    if (text == "!") id = Json(700);
  added().push_back(token("<|user|>", 700));
  expect_refusal({"id 700 belongs to two tokens", "\"<|user|>\""});
  root_ = good;
  added().push_back(token("", 700));
  expect_refusal({"added_tokens[1].content"});
}

// Hugging Face tokenizers 0.23 also refuses these, and ignores unknown members.
TEST_F(HfJson, RefusesAddedTokensWithoutAMember) {
  added().push_back(token("<|user|>", 700));
  added().as_array()[1].set("comment", "x");
  read();
  const Json good = root_, whole = token("", 0);
  for (const auto& [member, value] : whole.as_object()) {
    std::erase_if(added().as_array()[1].as_object(),
                  [&lacked = member](const auto& one) { return one.first == lacked; });
    expect_refusal({"no added_tokens[1]." + member});
    added().as_array()[1].set(member + "X", value);
    expect_refusal({"no added_tokens[1]." + member});
    added().as_array()[1].set(member, nullptr);
    expect_refusal({"added_tokens[1]." + member + " is null"});
    root_ = good;
  }
}

TEST_F(HfJson, IsSafeToReadWhenDamaged) {
  test::damage(read_file(test::trained("tokenizer.json")), [&](const std::string& bad) {
    test::write_quickly(dir_ / "tokenizer.json", bad);
    EXPECT_FALSE(encode(*read_hf_tokenizer(dir_.path().string()), "The harbour's books.").empty());
  });
}

TEST_F(HfJson, RefusesHalfAFile) {
  for (const char* key : {"model", "pre_tokenizer"}) {
    root_ = Json::load(test::trained("tokenizer.json"));
    std::erase_if(root_.as_object(), [&](const Json::Member& m) { return m.first == key; });
    expect_refusal({std::string("no ") + key});
  }
  root_ = Json::array();
  expect_refusal({"tokenizer.json", "wanted an object"});
  const std::string text = read_file(test::trained("tokenizer.json"));
  write_file(dir_ / "cut.json", text.substr(0, text.size() / 2));
  expect_error(ErrorKind::kData, {"cut.json", "not valid JSON"},
               [&] { read_hf_tokenizer(dir_ / "cut.json"); });
  expect_error(ErrorKind::kNoInput, {"none.json"}, [&] { read_hf_tokenizer(dir_ / "none.json"); });
}

}  // namespace
}  // namespace megalith
