#include "libcore/text/formats/packed_model.h"

#include <bit>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>

#include "libcore/base/error.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"
#include "libcore/text/formats/gpt2_files.h"
#include "libcore/text/formats/hf_json.h"
#include "libcore/text/formats/tiktoken_files.h"
#include "libcore/text/unicode/byte_alphabet.h"
#include "tests/support/environment.h"
#include "tests/support/log_lines.h"
#include "tests/text/fixtures.h"

namespace megalith {
namespace {

ByteLevelModel small_model() {
  ByteLevelModel model =
      read_gpt2_files(test::trained("vocab.json"), test::trained("merges.txt"), {.special = {"<|user|>"}});
  model.tables = ByteLevelTokenizer(model).tables();
  return model;
}

std::string packed(const ByteLevelModel& model) {
  Packer out;
  pack(model, out);
  return out.take();
}

std::optional<ByteLevelModel> unpacked(std::string_view bytes) {
  struct alignas(Packer::kAlignment) Line {
    std::array<char, Packer::kAlignment> bytes;
  };
  const auto memory = std::make_shared<std::vector<Line>>(bytes.size() / sizeof(Line) + 1);
  char* const begin = memory->front().bytes.data();
  std::copy(bytes.begin(), bytes.end(), begin);
  Unpacker in({begin, bytes.size()}, memory);
  std::optional<ByteLevelModel> model = unpack_model(in);
  return in.whole() ? model : std::nullopt;
}

template <class T>
SharedArray<T> changed(const SharedArray<T>& values, size_t at, const T& value) {
  std::vector<T> copy(values.begin(), values.end());
  copy.at(at) = value;
  return SharedArray(std::move(copy));
}

TEST(PackedModel, KeepsNoModelWithoutTables) {
  ByteLevelModel model = small_model();
  model.tables.reset();
  EXPECT_THROW(packed(model), Error);
}

TEST(PackedModel, GivesTheModelBack) {
  ByteLevelModel model = small_model();
  model.ignore_merges = true;
  model.tables->unmerged = {3, 7};
  model.tables->hash = "";  // cleared, so that it is computed
  model.normalized_added.push_back({.text = " x", .id = 3, .takes_space_before = true, .only_alone = true});
  model.normalized_added.push_back({.text = "y", .id = 4, .takes_space_after = true});
  const auto same = unpacked(packed(model));
  ASSERT_TRUE(same);
  EXPECT_EQ(packed(*same), packed(model));
  ByteLevelModel read = model;
  read.tables.reset();
  EXPECT_EQ(ByteLevelTokenizer(*same).hash(), ByteLevelTokenizer(read).hash());
  EXPECT_EQ(ByteLevelTokenizer(*same).unmerged(), (std::vector<int32_t>{3, 7}));
}

/// The model of small_model()'s merges as one of characters, with a tie, symbols that are no tokens, borders
/// and a token that is taken whole.
ByteLevelModel characters_model() {
  ByteLevelModel model;
  model.name = "characters";
  model.tokens = {"<unk>", "a", "b", "ab", "ba", "<x>", "c"};
  model.merges = {{1, 2, 3}, {2, 1, 4}, {4, 6, 0}};
  model.ranks = MergeRanks::kGiven;
  model.given_ranks = {0, 0, 1};
  model.whole = {5};
  const CharacterIds::Ends ends = {{0}, {1}, {2}, {3}, {4}, {5}, {0}};
  model.characters.emplace(model.tokens, CharacterIds::Unknown{.id = 0, .fuse = true}, ends);
  auto borders = std::make_shared<CharacterBorders>(model.tokens, model.merges, *model.characters);
  borders->keep_whole({{.text = "<x>", .id = 5}});
  model.borders = std::move(borders);
  model.tables = ByteLevelTokenizer(model).tables();
  return model;
}

TEST(PackedModel, GivesAModelOfCharactersBack) {
  const ByteLevelModel model = characters_model();
  const auto same = unpacked(packed(model));
  ASSERT_TRUE(same);
  EXPECT_EQ(packed(*same), packed(model));
  const std::string text = "abab<x>cca<x";
  const std::vector<int32_t> ids = {3, 3, 5, 0, 1, 0};
  EXPECT_EQ(test::encode(ByteLevelTokenizer(model), text), ids);
  EXPECT_EQ(test::encode(ByteLevelTokenizer(*same), text), ids);
  const auto refused = [&](auto change) {
    ByteLevelModel bad = characters_model();
    change(bad);
    EXPECT_FALSE(unpacked(packed(bad)));
  };
  const CharacterIds& characters = *model.characters;
  const auto with_characters = [&](auto change) {
    refused([&](ByteLevelModel& m) {
      CharacterIds::Arrays arrays = characters.arrays();
      CharacterIds::Unknown unknown = characters.unknown();
      change(arrays, unknown);
      m.characters.emplace(arrays, unknown);
    });
  };
  with_characters([](auto& arrays, auto&) { arrays.of_character = changed(arrays.of_character, 'a', 7); });
  with_characters([](auto& arrays, auto&) { arrays.ends = changed(arrays.ends, 3, 99u); });
  with_characters([](auto& arrays, auto&) { arrays.end_ids = changed(arrays.end_ids, 3, -1); });
  with_characters([](auto&, auto& unknown) { unknown.id = 7; });
  with_characters([](auto&, auto& unknown) { unknown.bytes[3] = 7; });
  refused([](ByteLevelModel& m) { m.tables->merges.ties = {}; });
  refused([](ByteLevelModel& m) {
    m.tables->merges.ties = SharedArray(std::vector<BytePairEncoder::Bucket>(
        2, {{MergeTables::kFree, MergeTables::kFree, MergeTables::kFree, MergeTables::kFree}}));
  });
  refused([&](ByteLevelModel& m) {
    CharacterBorders::Arrays arrays = m.borders->arrays();
    arrays.ascii = {};
    m.borders = std::make_shared<CharacterBorders>(arrays);
  });
}

TEST(PackedModel, ArraysLieAtMultiplesOfALine) {
  for (const size_t before : {0, 1, 55, 56, 57, 63, 64, 1000}) {
    Packer out;
    out.add(std::string(before, 'x'));
    out.add(std::string_view("y"));
    const std::string bytes = out.take();
    EXPECT_EQ(bytes.find('y') % Packer::kAlignment, 0u) << before;
    EXPECT_LT(bytes.size(), before + 3 * Packer::kAlignment);
  }
}

TEST(PackedModel, RefusesWhatIsTruncatedAndIdsBeyondTheTokens) {
  const ByteLevelModel good = small_model();
  const std::string bytes = packed(good);
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 50)
    EXPECT_FALSE(unpacked(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(unpacked(bytes + "x"));
  const auto refused = [&](auto change) {
    ByteLevelModel bad = good;
    change(bad);
    EXPECT_FALSE(unpacked(packed(bad)));
  };
  const auto size = static_cast<int32_t>(good.tables->tokens.size());
  refused([&](ByteLevelModel& m) { m.byte_ids[7] = size; });
  refused([&](ByteLevelModel& m) { m.byte_ids[7] = -1; });
  refused([&](ByteLevelModel& m) {
    m.tables->seeds = SharedArray(std::vector<PieceSeed>{{PieceKey::of("a"), size}});
  });
  refused([&](ByteLevelModel& m) { m.tables->unmerged = {size}; });
  refused([&](ByteLevelModel& m) { m.raw_added[0].id = size; });
  refused([&](ByteLevelModel& m) { m.raw_added[0].text = ""; });
  refused([&](ByteLevelModel& m) { m.eod = size; });
  refused([&](ByteLevelModel& m) { m.eod = -2; });
}

TEST(PackedModel, RefusesTablesThatNoModelHas) {
  const ByteLevelModel good = small_model();
  ASSERT_TRUE(unpacked(packed(good)));
  const auto fits = [&](auto change) {
    ByteLevelModel bad = good;
    change(*bad.tables);
    return unpacked(packed(bad)).has_value();
  };
  using Bucket = BytePairEncoder::Bucket;
  const auto with_slots = [&](uint64_t slot) {
    return fits([&](ByteLevelTables& t) {
      t.merges.buckets = changed(t.merges.buckets, 5, Bucket{{slot, slot, slot, slot}});
    });
  };
  const auto slot = [](int32_t left, int32_t right, int32_t rank) {
    return MergeTables::pair_of(left, right) << MergeTables::kRankBits | static_cast<uint64_t>(rank);
  };
  const auto size = static_cast<int32_t>(good.tables->tokens.size());
  ASSERT_TRUE(good.tables->merges.merged.empty()) << "ranks are ids";
  EXPECT_TRUE(with_slots(slot(size - 1, size - 1, size - 1)));
  EXPECT_FALSE(with_slots(slot(size, 0, 0)));
  EXPECT_FALSE(with_slots(slot(0, size, 0)));
  EXPECT_FALSE(with_slots(slot(0, 0, size)));
  EXPECT_FALSE(fits([&](ByteLevelTables& t) {  // a lookup in these buckets never ends
    t.merges.buckets =
        SharedArray(std::vector<Bucket>(4, {{slot(1, 1, 1), slot(1, 1, 1), slot(1, 1, 1), 0}}));
  }));
  EXPECT_FALSE(fits([&](ByteLevelTables& t) {
    t.merges.buckets = SharedArray(std::vector<Bucket>(t.merges.buckets.begin(), t.merges.buckets.end() - 1));
  }));
  EXPECT_FALSE(fits([&](ByteLevelTables& t) { t.merges.buckets = {}; }));
  EXPECT_FALSE(fits([&](ByteLevelTables& t) {
    t.merges.byte_ranks = changed(t.merges.byte_ranks, 70, static_cast<uint32_t>(size));
  }));
  EXPECT_FALSE(fits([&](ByteLevelTables& t) { t.merges.byte_ranks = {}; }));
  const auto with_merged = [&](int32_t last) {
    return fits([&](ByteLevelTables& t) {
      std::vector<int32_t> merged(static_cast<size_t>(size), 1);
      merged.back() = last;
      t.merges.merged = SharedArray(std::move(merged));
    });
  };
  EXPECT_TRUE(with_merged(size - 1));
  EXPECT_FALSE(with_merged(size));
  EXPECT_FALSE(with_merged(-1));
  EXPECT_FALSE(fits([&](ByteLevelTables& t) { t.merges.merged = SharedArray(std::vector<int32_t>{1}); }));
  EXPECT_FALSE(fits([&](ByteLevelTables& t) { t.borders.ways = {}; }));
  EXPECT_FALSE(fits([&](ByteLevelTables& t) { t.borders.known = {}; }));
  EXPECT_FALSE(fits([&](ByteLevelTables& t) { t.borders.doubts = {}; }));
  const TokenTexts& tokens = good.tables->tokens;
  const auto with_end = [&](size_t at, uint32_t end) {
    return fits(
        [&](ByteLevelTables& t) { t.tokens = TokenTexts(tokens.bytes(), changed(tokens.ends(), at, end)); });
  };
  EXPECT_FALSE(with_end(3, 0));
  EXPECT_FALSE(with_end(tokens.size() - 1, static_cast<uint32_t>(tokens.bytes().size()) + 1));
}

TEST(PackedModel, IsSafeToReadWhenDamaged) {
  size_t read = 0;
  test::damage(packed(small_model()), [&](const std::string& bad) {
    std::optional<ByteLevelModel> model = unpacked(bad);
    if (!model) return;
    ++read;
    const ByteLevelTokenizer tokenizer(std::move(*model));
    tokenizer.decode(
        test::encode(tokenizer, "Some text, which may become other ids, \xE6\x97\xA5\xE6\x9C\xAC"));
  });
  EXPECT_GT(read, 0u);
}

/// Merges of a vocabulary of 24,255 tokens, the first 256 of which are bytes: files large enough to be
/// cached.
std::vector<std::pair<std::string, std::string>> many_merges() {
  std::vector<std::pair<std::string, std::string>> merges;
  std::mt19937 random(9);
  std::set<std::string> known;
  while (merges.size() < 24'255 - 256) {
    const auto pick = [&] {  // letters, or a token made before
      if (random() % 2 == 0 || merges.empty()) return std::string(1, static_cast<char>('a' + random() % 26));
      const auto& [left, right] = merges[random() % merges.size()];
      return left + right;
    };
    const std::string left = pick(), right = pick();
    if (left.size() + right.size() > 20 || !known.insert(left + right).second) continue;
    merges.emplace_back(left, right);
  }
  return merges;
}

std::vector<std::string> alphabet() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back(to_byte_alphabet(std::string(1, static_cast<char>(byte))));
  return tokens;
}

/// A kind of tokenizer files whose model is cached.
struct Kind {
  const char* name;
  std::vector<std::string> files;  // files that are read
  std::function<void(const test::TempDir&)> write;
  std::function<std::unique_ptr<Tokenizer>(const test::TempDir&, const std::vector<std::string>& special)>
      make;
  std::vector<std::string> more;  // special tokens in addition to those of the files
};

void write_gpt2(const test::TempDir& dir) {
  Json vocab = Json::object();
  int64_t id = 0;
  for (const std::string& token : alphabet()) vocab.set(token, id++);
  std::string merges = "#version: 0.2\n";
  for (const auto& [left, right] : many_merges()) {
    vocab.as_object().emplace_back(left + right, Json(id++));
    merges += left + " " + right + "\n";
  }
  vocab.as_object().emplace_back("<|endoftext|>", Json(id));
  write_file(dir / "vocab.json", vocab.dump());
  write_file(dir / "merges.txt", merges);
}

/// A tokenizer.json like LLaMA-3's, with a normalizer and a token before each text.
void write_hf(const test::TempDir& dir) {
  Json root = Json::load(test::test_data("text/goldens/hf/llama3.json"));
  Json vocab = Json::object(), merges = Json::array();
  int64_t id = 0;
  for (const std::string& token : alphabet()) vocab.set(token, id++);
  for (const auto& [left, right] : many_merges()) {
    vocab.as_object().emplace_back(left + right, Json(id++));
    merges.push_back(Json::Array{left, right});
  }
  root.set("model",
           Json::Object{{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}, {"ignore_merges", true}});
  root.set("normalizer", Json::Object{{"type", "NFC"}});
  Json added = Json::array();
  for (const char* text : {"<|endoftext|>", "<a>"})
    added.push_back(Json::Object{{"id", id++},
                                 {"content", text},
                                 {"single_word", false},
                                 {"lstrip", text[1] == 'a'},
                                 {"rstrip", false},
                                 {"normalized", text[1] == 'a'},
                                 {"special", true}});
  root.set("added_tokens", added);
  const Json::Object before = {{"SpecialToken", Json::Object{{"id", "<a>"}, {"type_id", 0}}}};
  const Json::Object text = {{"Sequence", Json::Object{{"id", "A"}, {"type_id", 0}}}};
  root.set(
      "post_processor",
      Json::Object{{"type", "TemplateProcessing"},
                   {"single", Json::Array{before, text}},
                   {"special_tokens", Json::Object{{"<a>", Json::Object{{"ids", Json::Array{id - 1}}}}}}});
  write_file(dir / "tokenizer.json", root.dump());
}

/// A tokenizer.json like LLaMA-2's, without a pre_tokenizer.
void write_characters(const test::TempDir& dir) {
  Json root = Json::load(test::test_data("text/goldens/hf/llama2.json"));
  Json vocab = Json::object(), merges = Json::array();
  int64_t id = 0;
  for (const char* token : {"<unk>", "<s>", "</s>", "\u2581"}) vocab.set(token, id++);
  for (char letter = 'a'; letter <= 'z'; ++letter) vocab.set(std::string(1, letter), id++);
  for (const auto& [left, right] : many_merges()) {
    vocab.as_object().emplace_back(left + right, Json(id++));
    merges.push_back(Json::Array{left, right});
  }
  vocab.as_object().emplace_back("<|endoftext|>", Json(id));
  root.set(
      "model",
      Json::Object{
          {"type", "BPE"}, {"unk_token", "<unk>"}, {"fuse_unk", true}, {"vocab", vocab}, {"merges", merges}});
  write_file(dir / "tokenizer.json", root.dump());
}

std::string base64(const std::string& bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (at + i < bytes.size() ? static_cast<uint8_t>(bytes[at + i]) : 0u);
    for (size_t i = 0; i < 4; ++i) out += at + i > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * i) & 63];
  }
  return out;
}

void write_tiktoken(const test::TempDir& dir) {
  std::string lines;
  int64_t rank = 0;
  for (int byte = 0; byte < 256; ++byte)
    lines += concat(base64(std::string(1, static_cast<char>(byte))), " ", rank++, "\n");
  for (const auto& [left, right] : many_merges()) lines += concat(base64(left + right), " ", rank++, "\n");
  write_file(dir / "ranks", lines);
}

const std::vector<Kind>& kinds() {
  static const std::vector<std::string> kSeven = {"<unk>", "<s>",   "</s>",  "<mask>",
                                                  "<pad>", "<cls>", "<sep>", "<|user|>"};
  static const std::vector<Kind> kAll = {
      {"gpt2",
       {"vocab.json", "merges.txt"},
       write_gpt2,
       [](const test::TempDir& dir, const std::vector<std::string>& special) -> std::unique_ptr<Tokenizer> {
         return make_gpt2_tokenizer(dir / "vocab.json", dir / "merges.txt", {.special = special});
       },
       {"<|user|>"}},
      {"hf",
       {"tokenizer.json"},
       write_hf,
       [](const test::TempDir& dir, const std::vector<std::string>& special) {
         return read_hf_tokenizer(dir / "tokenizer.json", {.special = special});
       },
       {"<|user|>"}},
      {"tiktoken",
       {"ranks"},
       write_tiktoken,
       [](const test::TempDir& dir, const std::vector<std::string>& special) -> std::unique_ptr<Tokenizer> {
         return make_tiktoken_tokenizer(dir / "ranks", {.special_tokens = 20, .special = special});
       },
       kSeven},
      {"characters",
       {"tokenizer.json"},
       write_characters,
       [](const test::TempDir& dir, const std::vector<std::string>& special) {
         return read_hf_tokenizer(dir / "tokenizer.json", {.special = special});
       },
       {"<|user|>"}}};
  return kAll;
}

class KeptTokenizer : public testing::TestWithParam<size_t> {
 protected:
  KeptTokenizer() : kind_(kinds()[GetParam()]) {
    kind_.write(dir_);
    use("right");
    right_ = make();
    use("cache");
  }
  void use(const char* cache) {
    cache_ = dir_ / cache;
    folder_.reset();  // before the next one saves the current setting
    folder_.emplace("MEGALITH_CACHE_DIR", cache_);
  }
  std::unique_ptr<Tokenizer> make(const std::vector<std::string>& special = {}) {
    return kind_.make(dir_, special);
  }
  std::vector<std::string> kept() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(cache_))
      paths.push_back(entry.path().string());
    return paths;
  }
  void expect_same(const Tokenizer& tokenizer, const Tokenizer& right) {
    EXPECT_EQ(tokenizer.hash(), right.hash());
    EXPECT_EQ(tokenizer.eod(), right.eod());
    EXPECT_EQ(tokenizer.vocab_size(), right.vocab_size());
    EXPECT_EQ(tokenizer.name(), right.name());
    std::mt19937 random(2);
    for (int round = 0; round < 300; ++round) {
      std::string text(random() % 60, ' ');
      for (char& c : text) c = random() % 9 == 0 ? ' ' : static_cast<char>('a' + random() % 26);
      text += "e\u0301 <a><|user|></s><|endoftext|>";
      const std::vector<int32_t> ids = test::encode(tokenizer, text);
      ASSERT_EQ(ids, test::encode(right, text));
      ASSERT_EQ(tokenizer.decode(ids), right.decode(ids));
    }
  }
  void expect_same() { expect_same(*make(), *right_); }

  const Kind& kind_;
  test::TempDir dir_;
  std::string cache_;
  std::optional<test::Variable> folder_;
  std::unique_ptr<Tokenizer> right_;
};

TEST_P(KeptTokenizer, IsTheSameInLaterRuns) {
  expect_same();  // stores the model
  ASSERT_EQ(kept().size(), 1U);
  const auto written = std::filesystem::last_write_time(kept()[0]);
  expect_same();  // reads the stored model
  EXPECT_EQ(std::filesystem::last_write_time(kept()[0]), written);
  EXPECT_EQ(kept().size(), 1U);
}

TEST_P(KeptTokenizer, IsMadeAgainWhenDamaged) {
  make();
  const std::string path = kept().at(0), good = read_file(path);
  const test::LogLines log;
  for (const size_t at : {size_t{0}, size_t{30}, good.size() / 2, good.size() - 1}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    write_file(path, bad);
    expect_same();
    EXPECT_TRUE(read_file(path) == good) << at;
  }
  write_file(path, good.substr(0, good.size() / 3));
  expect_same();
  EXPECT_TRUE(read_file(path) == good);
}

TEST_P(KeptTokenizer, IsMadeAgainWhenAFileOrASettingChanges) {
  make();
  size_t count = kept().size();
  for (const std::string& file : kind_.files) {
    write_file(dir_ / file, read_file(dir_ / file) + "\n");  // changes the file but not its meaning
    expect_same();
    EXPECT_EQ(kept().size(), ++count);
  }
  const auto more = make(kind_.more);
  EXPECT_EQ(kept().size(), ++count);
  EXPECT_NE(more->hash(), right_->hash());
  expect_same(*make(kind_.more), *more);
  EXPECT_EQ(kept().size(), count);
  expect_same();
}

TEST_P(KeptTokenizer, NeedsNoFolder) {
  write_file(cache_, "");
  expect_same();
}

INSTANTIATE_TEST_SUITE_P(Kinds, KeptTokenizer, testing::Values(0, 1, 2, 3),
                         [](const auto& kind) { return std::string(kinds()[kind.param].name); });

/// Two sources of the same length and the same XXH64 have different cache files. To construct them, one word
/// of a lane of the hash is changed, and a change of the next word of that lane cancels the effect (in
/// Collet's specification, each 32 bytes add 8 to each of four lanes).
TEST(KeptFile, IsOfItsSourcesWhoeverMadeThem) {
  constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F;
  const auto in_lane = [&](uint64_t lane, uint64_t word) {
    return std::rotl(lane + word * kPrime2, 31) * kPrime1;
  };
  uint64_t inverse = 1;  // inverse of kPrime2, by Newton's method
  for (int step = 0; step < 6; ++step) inverse *= 2 - kPrime2 * inverse;
  const uint64_t lane = kPrime1 + kPrime2;  // the first lane for seed 0
  // The hashed data begin with the text's size, so in the text the first lane recurs at byte 24.
  std::string mine(size_t{1} << 19, 'x'), theirs = mine;
  uint64_t size = mine.size();
  uint64_t word = 0;
  std::memcpy(&word, mine.data(), sizeof word);
  const uint64_t sized = in_lane(lane, size);
  const uint64_t changed = word ^ 0x0101;
  const uint64_t next = word + (in_lane(sized, word) - in_lane(sized, changed)) * inverse;
  std::memcpy(theirs.data() + 24, &changed, sizeof changed);
  std::memcpy(theirs.data() + 56, &next, sizeof next);
  const std::string_view length(reinterpret_cast<const char*>(&size), sizeof size);
  ASSERT_EQ(xxh64(concat(length, mine)), xxh64(concat(length, theirs)));
  ASSERT_NE(mine, theirs);
  const test::TempDir dir;
  const test::Variable folder("MEGALITH_CACHE_DIR", dir / "cache");
  const auto kept = [&](const std::string& text) {
    write_file(dir / "source", text);
    const std::vector<std::string> files = {dir / "source"};
    return kept_file("kind", files, {})->path();
  };
  EXPECT_NE(kept(mine), kept(theirs));
  EXPECT_EQ(kept(mine), kept(mine));
}

TEST(KeptHf, KnowsTheEndOfADocumentAndWhatSurroundsATextApart) {
  const test::TempDir dir;
  write_hf(dir);
  const test::Variable folder("MEGALITH_CACHE_DIR", dir / "cache");
  const std::string path = dir / "tokenizer.json";
  const int32_t end = read_hf_tokenizer(path)->eod();
  write_file(dir / "tokenizer_config.json", R"({"eos_token": "<a>"})");
  EXPECT_EQ(read_hf_tokenizer(path)->eod(), end + 1);
  EXPECT_EQ(read_hf_tokenizer(path)->eod(), end + 1);
  EXPECT_EQ(test::encode(*read_hf_tokenizer(path), "a"), (std::vector<int32_t>{end + 1, 'a'}));
  EXPECT_EQ(test::encode(*read_hf_tokenizer(path, {.around = false}), "a"), std::vector<int32_t>{'a'});
}

}  // namespace
}  // namespace megalith
