#include "libcore/text/formats/sentencepiece_files.h"

#include <filesystem>
#include <random>

#include "libcore/io/files/file.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_decoder.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_library.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_table.h"
#include "tests/support/environment.h"
#include "tests/support/large.h"
#include "tests/text/fixtures.h"
#include "tests/text/formats/sentencepiece/random_model.h"

namespace megalith {
namespace {

using test::encode;
using test::kMark;
using test::Table;

/// The ids of this system's library, corrected for what a newer release (0.2.3) does differently: a character
/// that is an unused piece is unknown there, and one that is a control piece does not make the text an error.
class Judge {
 public:
  Judge(const Table& table, const std::string& bytes)
      : table_(table), library_(sentencepiece_library_tokenizer("Llama2Tokenizer", "the model", bytes)) {
    for (size_t id = 0; id < table.tokens.size(); ++id) {
      if (table.tokens[id].type == Table::kUnknown) unknown_ = static_cast<int32_t>(id);
      if (table.tokens[id].text == "<0x00>") first_byte_ = static_cast<int32_t>(id);
    }
  }
  /// Nothing if this release refuses the text.
  std::optional<std::vector<int32_t>> ids(const std::string& text) const {
    std::vector<int32_t> ids;
    try {
      ids = encode(*library_, text);
    } catch (const Error&) {
      return std::nullopt;
    }
    std::vector<int32_t> newer;
    for (const int32_t id : ids)
      if (is_unused_character(id))
        add_unknown(id, newer);
      else if (id != unknown_ || newer.empty() || newer.back() != unknown_)
        newer.push_back(id);
    return newer;
  }
  std::string decode(const std::vector<int32_t>& ids) const { return library_->decode(ids); }

 private:
  bool is_unused_character(int32_t id) const {
    const Table::Token& token = table_.tokens[static_cast<size_t>(id)];
    return token.type == Table::kUnused && count_code_points(token.text) == 1;
  }
  void add_unknown(int32_t id, std::vector<int32_t>& ids) const {
    if (table_.trainer.byte_fallback)
      for (const char byte : table_.tokens[static_cast<size_t>(id)].text)
        ids.push_back(first_byte_ + static_cast<uint8_t>(byte));
    else if (ids.empty() || ids.back() != unknown_)
      ids.push_back(unknown_);
  }

  const Table& table_;
  std::unique_ptr<Tokenizer> library_;
  int32_t unknown_ = 0, first_byte_ = 0;
};

std::vector<int32_t> in_parts(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> joined;
  tokenizer.encode_in_parts(
      text, [&](std::span<const int32_t> ids) { joined.insert(joined.end(), ids.begin(), ids.end()); });
  return joined;
}

std::string described(const Table& table, const std::string& text) {
  const auto& rules = table.rules;
  std::string out = concat(quote(text), " charsmap ", rules.charsmap.size(), " add ", rules.add_space,
                           " remove ", rules.remove_extra_spaces, " escape ", rules.escape_spaces, " after ",
                           table.trainer.space_after, " bytes ", table.trainer.byte_fallback, ":");
  for (size_t id = 0; id < table.tokens.size(); ++id)
    if (table.tokens[id].type != Table::kByte)
      out += concat(' ', id, '=', quote(table.tokens[id].text), '/', table.tokens[id].type, '/',
                    table.tokens[id].score);
  return out;
}

const std::string& charsmap() {
  static const std::string kMap =
      parse_sentencepiece_table(read_file(test::test_data("text/goldens/sentencepiece/nmt_nfkc_cf.model")),
                                "x")
          .rules.charsmap;
  return kMap;
}

void compare_random_models(size_t models, size_t texts, unsigned seed) {
  const test::TempDir dir;
  std::mt19937 random(seed);
  size_t compared = 0;
  for (size_t n = 0; n < models; ++n) {
    const Table table = test::random_model(random, charsmap());
    const std::string bytes = test::bytes_of(table);
    test::write_quickly(dir / "some.model", bytes);
    const auto tokenizer = read_sentencepiece_tokenizer("Llama2Tokenizer", dir / "some.model");
    const Judge judge(table, bytes);
    const SentencePieceDecoder decoder(table);
    const auto joined = JoinedPieces::of(decoder);
    ASSERT_TRUE(joined);
    test::TextsTogether together;
    for (size_t i = 0; i < texts; ++i) {
      const std::string text = test::random_text(table, random);
      if (const auto wanted = judge.ids(text)) {
        ASSERT_EQ(encode(*tokenizer, text), *wanted) << n << ' ' << described(table, text);
        ASSERT_EQ(in_parts(*tokenizer, text), *wanted);
        ++compared;
      }
      std::vector<int32_t> ids;
      for (size_t k = random() % 12; k > 0; --k)
        ids.push_back(static_cast<int32_t>(random() % table.tokens.size()));
      ASSERT_EQ(tokenizer->decode(ids), judge.decode(ids))
          << described(table, "") << testing::PrintToString(ids);
      together.add("", ids, judge.decode(ids));
    }
    ByteBuffer decoded;
    joined->decode_all(together.ids, decoded);
    ASSERT_EQ(std::string_view(decoded.data(), decoded.size()), together.decoded) << described(table, "");
  }
  EXPECT_GT(compared, models * texts * 2 / 3);
}

std::string golden(const std::string& name) {
  return test::test_data("text/goldens/sentencepiece/" + name);
}

/// [text, ids, decoded text], made by release 0.2.3 (tools/golden/tokenizer.py).
TEST(SentencePieceFiles, GiveTheIdsAndTextsOfTheNewestRelease) {
  for (const char* name : {"bytes", "digits", "suffix", "user", "nmt_nfkc_cf"}) {
    const auto tokenizer =
        read_sentencepiece_tokenizer("GPTSentencePieceTokenizer", golden(concat(name, ".model")));
    const Json list = Json::load(golden(concat(name, ".json")));
    ASSERT_GT(list.as_array().size(), 200u);
    test::TextsTogether together;
    for (const Json& entry : list.as_array()) {
      const std::string& text = entry.as_array()[0].as_string();
      const std::vector<int32_t> wanted = test::ids_of(entry.as_array()[1]);
      EXPECT_EQ(encode(*tokenizer, text), wanted) << name << ' ' << quote(text);
      EXPECT_EQ(tokenizer->decode(wanted), entry.as_array()[2].as_string()) << name << ' ' << quote(text);
      IdBuffer buffer(sizeof(uint16_t));
      tokenizer->encode_to(text, buffer);
      EXPECT_EQ(buffer.ids(), wanted);
      together.add(text, wanted, entry.as_array()[2].as_string());
    }
    together.expect(*tokenizer, name);
  }
}

// A piece whose blank is dropped, pieces without text, and bytes around these, by the rules of release 0.2.3
// (SentencePieceProcessor::Decode).
TEST(SentencePieceFiles, DecodeManyTextsAtOnce) {
  Table table;
  table.trainer.unknown_text = " ? ";
  table.rules.add_space = true;
  table.rules.remove_extra_spaces = false;
  for (const auto& [text, type] : {std::pair{"<unk>", Table::kUnknown},
                                   {"<s>", Table::kControl},
                                   {"\u2581a", Table::kNormal},
                                   {"\u2581", Table::kNormal},
                                   {"<0xC3>", Table::kByte},
                                   {"<0xA9>", Table::kByte}})
    table.tokens.push_back({.text = text, .score = 0, .type = type});
  const auto decoded = [&](const std::vector<int32_t>& ids) {
    const SentencePieceDecoder decoder(table);
    ByteBuffer out;
    JoinedPieces::of(decoder)->decode_all(ids, out);
    return std::string(out.data(), out.size());
  };
  constexpr int32_t kEnd = Tokenizer::kTextEnd;
  EXPECT_EQ(decoded({1, 2, 2, kEnd, kEnd, 0, 2, kEnd}), "a a\n\n ?  a\n");
  EXPECT_EQ(decoded({3, 3, 2, kEnd}), "  a\n");
  EXPECT_EQ(decoded({4, 5, 2, kEnd, 4, 1, 5, kEnd}), "\u00e9 a\n\uFFFD\uFFFD\n");
  table.rules.remove_extra_spaces = true;
  EXPECT_EQ(decoded({3, 1, 3, 2, 2, kEnd}), "a a\n");
  table.trainer.unknown_text = "\xE2";
  const SentencePieceDecoder decoder(table);
  EXPECT_FALSE(JoinedPieces::of(decoder));
}

TEST(SentencePieceFiles, AreTheSameFromTheKeptFile) {
  const test::TempDir dir;
  const test::Variable folder("MEGALITH_CACHE_DIR", dir / "cache");
  for (const char* name : {"bytes", "suffix", "user", "nmt_nfkc_cf"}) {
    test::ModelWriter more, trainer;  // a model that is large enough to be kept
    trainer.text(1, std::string(300'000, 'x'));
    more.text(2, trainer.bytes());
    const std::string path = dir / concat(name, ".model");
    write_file(path, read_file(golden(concat(name, ".model"))) + more.bytes());
    const auto first = read_sentencepiece_tokenizer("Llama2Tokenizer", path);
    std::filesystem::path kept;
    for (const auto& entry : std::filesystem::directory_iterator(dir / "cache")) kept = entry.path();
    ASSERT_FALSE(kept.empty());
    const auto written = std::filesystem::last_write_time(kept);
    const auto later = read_sentencepiece_tokenizer("GPTSentencePieceTokenizer", path);
    EXPECT_EQ(std::filesystem::last_write_time(kept), written);
    EXPECT_EQ(later->name(), "GPTSentencePieceTokenizer");
    EXPECT_EQ(later->hash(), first->hash());
    EXPECT_EQ(later->eod(), first->eod());
    EXPECT_EQ(later->vocab_size(), first->vocab_size());
    const Json list = Json::load(golden(concat(name, ".json")));
    for (const Json& entry : list.as_array()) {
      const std::vector<int32_t> wanted = test::ids_of(entry.as_array()[1]);
      EXPECT_EQ(encode(*later, entry.as_array()[0].as_string()), wanted);
      EXPECT_EQ(later->decode(wanted), entry.as_array()[2].as_string());
    }
    std::filesystem::remove(kept);
  }
}

/// Words, blanks, user-defined and unknown pieces. Some are repeated until they are very long.
std::string long_text(std::mt19937& random) {
  static const std::vector<std::string> kKinds = {"a",  "he",     " ",      "  ",        std::string(kMark),
                                                  "in", " the",   "\n",     "<sep>",     "ab",
                                                  "\t", "\u65e5", "\u00e9", "\U0001F600"};
  return test::text_with_giants(kKinds, random);
}

TEST(SentencePieceFiles, EncodeALongTextBitByBitAsTheLibraryDoesAtOnce) {
  std::mt19937 random(31);
  for (const char* name : {"bytes", "suffix", "user", "nmt_nfkc_cf"}) {
    const std::string path = golden(concat(name, ".model"));
    const auto tokenizer = read_sentencepiece_tokenizer("Llama2Tokenizer", path);
    const auto library = sentencepiece_library_tokenizer("Llama2Tokenizer", path, read_file(path));
    for (const std::string& text :
         {std::string(1'500'000, ' ') + "x", std::string(1'500'000, '='), long_text(random)}) {
      const std::vector<int32_t> wanted = encode(*library, text);
      EXPECT_TRUE(encode(*tokenizer, text) == wanted) << name << ' ' << quote(text.substr(0, 50));
      EXPECT_TRUE(in_parts(*tokenizer, text) == wanted) << name << ' ' << quote(text.substr(0, 50));
    }
  }
}

TEST(SentencePieceFiles, GiveTheIdsAndTextsOfTheLibraryForRandomModels) {
  compare_random_models(400, 50, 1);
}

TEST(SentencePieceFiles, GiveTheIdsAndTextsOfTheLibraryForAMillionTexts) {
  if (!test::large_tests_wanted()) GTEST_SKIP() << test::kOnlyAmongLargeTests;
  for (unsigned seed = 2; seed < 22; ++seed) compare_random_models(500, 100, seed);
}

}  // namespace
}  // namespace megalith
