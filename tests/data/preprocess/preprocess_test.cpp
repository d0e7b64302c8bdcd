#include "libcore/data/preprocess/preprocess.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/data/preprocess/preprocess_stages.h"
#include "libcore/io/files/file.h"
#include "tests/data/preprocess/preprocess_fixture.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using Document = std::vector<std::string>;  // the texts of its sequences

/// The expected bytes of a dataset with u16 tokens, according to the table in docs/formats/indexed.md.
struct Bytes {
  std::string bin, idx;
};

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

Bytes dataset_of(const std::vector<Document>& documents, bool append_eod) {
  Bytes out;
  std::vector<int32_t> lengths;
  std::vector<int64_t> boundaries{0};
  for (const Document& document : documents) {
    size_t sequences = 0;
    for (const std::string& text : document) {
      if (text.empty()) continue;
      for (const char c : text) put(out.bin, static_cast<uint16_t>(static_cast<unsigned char>(c)));
      lengths.push_back(static_cast<int32_t>(text.size()));
      ++sequences;
    }
    if (append_eod && sequences > 0) {
      put(out.bin, uint16_t{256});
      ++lengths.back();
    }
    boundaries.push_back(static_cast<int64_t>(lengths.size()));
  }
  out.idx = std::string("MMIDIDX\0\0", 9);
  put(out.idx, uint64_t{1});
  put(out.idx, uint8_t{8});
  put(out.idx, uint64_t{lengths.size()});
  put(out.idx, uint64_t{boundaries.size()});
  for (const int32_t n : lengths) put(out.idx, n);
  int64_t pointer = 0;
  for (const int32_t n : lengths) {
    put(out.idx, pointer);
    pointer += 2 * n;
  }
  for (const int64_t b : boundaries) put(out.idx, b);
  return out;
}

class PreprocessTest : public test::PreprocessFixture {
 protected:
  void expect_dataset(const std::string& key, const std::vector<Document>& documents) {
    const Bytes expected = dataset_of(documents, config_.append_eod);
    const std::string prefix = dir_ / ("out_" + key + (config_.split_sentences ? "_sentence" : "_document"));
    EXPECT_EQ(read_file(prefix + ".bin"), expected.bin);
    EXPECT_EQ(read_file(prefix + ".idx"), expected.idx);
  }
  size_t warnings() const {
    size_t n = 0;
    for (const std::string& line : logged_) n += line.starts_with("warning: ");
    return n;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path()))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  bool logged(const std::string& part) const {
    for (const std::string& line : logged_)
      if (line.find(part) != std::string::npos) return true;
    return false;
  }
};

TEST_F(PreprocessTest, MakesOneDocumentOfEachLine) {
  input("a",
        "{\"text\":\"one\"}\n{\"text\":\"\"}\n{\"text\":[\"two\",\"\",\"three\"]}\n{\"text\":[]}\n{\"text\":"
        "\"\\u0074wo\\n\"}");
  config_.append_eod = true;
  const PreprocessSummary summary = run();
  expect_dataset("text", {{"one"}, {""}, {"two", "", "three"}, {}, {"two\n"}});
  EXPECT_EQ(summary.documents, 5);
  EXPECT_EQ(summary.lines, 5);
}

/// Gives the id 70000, which is outside the vocabulary that it claims to have.
class LyingTokenizer : public test::ByteTokenizer {
 public:
  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override {
    for (size_t i = 0; i < utf8.size(); ++i) ids.push_back(70000);
  }
};

TEST_F(PreprocessTest, RefusesIdsThatDoNotFitTheFile) {
  const std::string path = input("a", "\n{\"text\":\"x\"}\n");
  try {
    preprocess(config_, LyingTokenizer());
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kData);
    EXPECT_TRUE(std::string(e.what()).starts_with(
        path + ":2:1: refused by the tokenizer: token id 70000 does not fit"))
        << e.what();
  }
}

TEST_F(PreprocessTest, LeavesTheEndOfDocumentOutUnlessAsked) {
  input("a", "{\"text\":\"one\"}\n");
  run();
  expect_dataset("text", {{"one"}});
}

TEST_F(PreprocessTest, KeepsTheOrderWhateverTheWorkersAndBatches) {
  std::mt19937 random(5);
  std::string contents;
  std::vector<Document> expected;
  while (contents.size() < 3'000'000) {
    const std::string text(random() % 13 == 0 ? random() % 200'000 : random() % 300,
                           static_cast<char>('a' + random() % 26));
    contents += "{\"id\":[1,{}],\"text\":\"" + text + "\"}" + (random() % 5 ? "\n" : "\r\n");
    expected.push_back({text});
  }
  input("a", contents);
  for (const int workers : {1, 2, 7}) {
    for (const int batch : {0, 1, 25}) {
      config_.workers = workers;
      config_.chunk_size = batch;
      run();
      expect_dataset("text", expected);
    }
  }
}

// The ids of a line above 8 MiB are computed in parts and kept on the disk until they are written. The
// datasets must be the same as for shorter lines.
TEST_F(PreprocessTest, MakesTheSameOfVeryLongDocuments) {
  const std::string a(9'000'000, 'a'), b(3'000'000, 'b');
  const std::string small = "{\"text\":\"s\"}\n";
  input("a", small + "{\"text\":\"" + a + "\"}\n" + small + "{\"text\":[\"\",\"" + a + "\",\"\",\"" + b +
                 "\",\"\"]}\n{\"text\":\"\",\"x\":\"" + a + "\"}\n" + small);
  for (const bool eod : {false, true}) {
    config_.append_eod = eod;
    run();
    expect_dataset("text", {{"s"}, {a}, {"s"}, {a, b}, {}, {"s"}});
    EXPECT_EQ(read_sidecar(dir_ / "out_text_document")->max_token_id, eod ? 256 : 's');
  }
}

TEST_F(PreprocessTest, NamesTheLineOfAVeryLongTextThatIsRefused) {
  const std::string path =
      input("a", "{\"text\":\"s\"}\n{\"text\":\"!" + std::string(9'000'000, 'a') + "\"}\n");
  EXPECT_TRUE(error().starts_with(path + ":2:1: refused by the tokenizer: '!' is no text")) << error();
}

TEST_F(PreprocessTest, RejectsAVeryLongTextThatIsRefusedInTheMiddle) {
  const std::string a(9'000'000, 'a');
  const std::string bad = "{\"id\":1, \"text\":[\"\\u0061" + a + "\",\"" + a + "\"],\"t\":\"\\u0021\\n\" }";
  input("a", "{\"text\":\"s\",\"t\":\"1\"}\n" + bad + " \r\n{\"text\":\"" + a + "\",\"t\":\"3\"}\n" + bad);
  config_.json_keys = {"text", "t"};
  config_.on_error = OnError::kSkip;
  config_.rejects = dir_ / "rejects";
  EXPECT_EQ(run().documents, 2);
  expect_dataset("text", {{"s"}, {a}});
  expect_dataset("t", {{"1"}, {"3"}});
  EXPECT_EQ(read_file(dir_ / "rejects"), bad + " \r\n" + bad + "\n");
}

TEST_F(PreprocessTest, RejectsAVeryLongElementAsOneLine) {
  const std::string bad = "{\"id\":1,\n\"text\":\"\\u0021" + std::string(9'000'000, 'a') + "\"}";
  input("a", "[{\"text\":\"s\"},\n" + bad + "\r\n, {\"text\":\"t\"}]");
  config_.on_error = OnError::kSkip;
  config_.rejects = dir_ / "rejects";
  EXPECT_EQ(run().documents, 2);
  expect_dataset("text", {{"s"}, {"t"}});
  std::string line = bad;
  line[line.find('\n')] = ' ';
  std::string found = read_file(dir_ / "rejects");
  EXPECT_EQ(trim(found), line);
  EXPECT_EQ(std::count(found.begin(), found.end(), '\n'), 1);
}

// The text of a refused document is not remembered, so a later document with an equal text is not a
// duplicate.
TEST_F(PreprocessTest, RejectsEachOfTwoEqualTextsThatAreRefused) {
  const std::string a(9'000'000, 'a');
  const std::string bad = "{\"text\":[\"" + a + "\",\"!\"]}\n", good = "{\"text\":\"" + a + "\"}\n";
  input("a", bad + good + bad + good);
  config_.on_error = OnError::kSkip;
  config_.dedup = Dedup::kExact;
  for (const bool resume : {false, true}) {
    config_.resume = resume;
    const PreprocessSummary summary = run();
    EXPECT_EQ(summary.skipped(), 2);
    EXPECT_EQ(summary.duplicates, 1);
    EXPECT_EQ(summary.documents, 1);
    expect_dataset("text", {{a}});
  }
}

/// Splits sentences with the model of tools/golden/make_sentences.py.
class PreprocessSentences : public PreprocessTest {
 protected:
  PreprocessSentences() { config_.split_sentences = true; }
  const test::Variable models_{"NLTK_DATA", test::test_data("text/goldens/punkt")};
};

TEST_F(PreprocessSentences, BecomeTheSequencesOfADocument) {
  input(
      "a",
      "{\"text\":\"Dr. Ito came. He sang.\\n\\nOK\\n\",\"t\":\"One. Two.\"}\n{\"text\":\"\",\"t\":\" \\n\"}\n"
      "{\"text\":[\"Is a. list\",\"\"],\"t\":[]}\n{\"text\":\"x\",\"t\":\"y.\"}\n");
  config_.json_keys = {"text", "t"};
  for (const bool eod : {false, true}) {
    config_.append_eod = eod;
    for (const int workers : {1, 3}) {
      config_.workers = workers;
      config_.keep_newlines = false;
      run();
      expect_dataset("text", {{"Dr. Ito came.", "He sang.", "OK"}, {}, {"Is a. list"}, {"x"}});
      expect_dataset("t", {{"One.", "Two."}, {}, {}, {"y."}});
      config_.keep_newlines = true;
      run();
      expect_dataset("text", {{"Dr. Ito came. ", "He sang.\n\n", "OK"}, {}, {"Is a. list"}, {"x"}});
    }
  }
  EXPECT_FALSE(file_exists(dir_ / "out_text_document.idx"));
  const Json options = read_sidecar(dir_ / "out_text_sentence")->options;
  EXPECT_EQ(options["lang"].as_string(), "english");
  EXPECT_TRUE(options["keep_newlines"].as_bool());
  EXPECT_TRUE(logged("> sentences are split with " + test::test_data("text/goldens/punkt/tokenizers")));
}

TEST_F(PreprocessSentences, AreThoseOfVeryLongDocumentsToo) {
  const std::string word(9'000'000, 'a'), sentence = "There they go.";
  std::string text;
  // a unit of 16 characters, so that no sentence lies across two parts
  while (text.size() < word.size()) text += sentence + "\\n ";
  const Document sentences(text.size() / 17, sentence), parts(9, std::string(1'000'000, 'a'));
  input("a", "{\"text\":\"One. Two\"}\n{\"text\":\"" + text + "\"}\n{\"text\":\"" + word +
                 "\"}\n{\"text\":[\"" + word + "\",\"One. Two.\"]}\n{\"text\":\"s\"}\n");
  config_.append_eod = true;
  run();
  expect_dataset("text", {{"One.", "Two"}, sentences, parts, {word, "One. Two."}, {"s"}});
}

TEST_F(PreprocessSentences, NeedAModel) {
  input("a", "{\"text\":\"x\"}\n");
  config_.language = "absent";
  EXPECT_THROW(run(), Error);
  EXPECT_EQ(files(), std::vector<std::string>{"a"});
}

TEST_F(PreprocessTest, WritesOneDatasetPerKey) {
  input("a", "{\"title\":\"T\",\"text\":[\"x\",\"y\"]}\n{\"text\":\"\",\"title\":\"U\",\"z\":0}\n");
  config_.json_keys = {"text", "title"};
  config_.append_eod = true;
  run();
  expect_dataset("text", {{"x", "y"}, {""}});
  expect_dataset("title", {{"T"}, {"U"}});
}

/// The line of a document with a list of texts for each key. The texts of all keys together are encoded in
/// several calls.
std::string line_of(const std::vector<Document>& of_keys) {
  std::string line = "{";
  for (size_t k = 0; k < of_keys.size(); ++k) {
    std::vector<std::string> texts;
    for (const std::string& text : of_keys[k]) texts.push_back(concat('"', text, '"'));
    line += concat(k > 0 ? ", " : "", "\"k", k, "\": [", join(texts, ", "), ']');
  }
  return line + "}\n";
}

TEST_F(PreprocessTest, GivesEachOfManyKeysTheIdsOfItsTexts) {
  constexpr size_t kKeys = 40;
  std::mt19937 random(3);
  std::string contents;
  std::vector<std::vector<Document>> expected(kKeys);
  for (int document = 0; document < 60; ++document) {
    std::vector<Document> of_keys(kKeys);
    for (Document& texts : of_keys)
      for (size_t i = random() % 9; i > 0; --i)
        texts.emplace_back(random() % 11 == 0 ? 0 : random() % 400, static_cast<char>('a' + random() % 26));
    const bool refused = document % 7 == 3;  // by ByteTokenizer, after it has encoded other keys
    if (refused) of_keys[kKeys / 2].emplace_back("!");
    contents += line_of(of_keys);
    for (size_t k = 0; k < kKeys && !refused; ++k) expected[k].push_back(of_keys[k]);
  }
  input("a", contents);
  config_.json_keys.clear();
  for (size_t k = 0; k < kKeys; ++k) config_.json_keys.push_back(concat("k", k));
  config_.on_error = OnError::kSkip;
  for (const bool eod : {false, true}) {
    config_.append_eod = eod;
    run();
    for (size_t k = 0; k < kKeys; ++k) expect_dataset(config_.json_keys[k], expected[k]);
  }
}

TEST_F(PreprocessTest, TakesInputsInOrderPlainAndCompressed) {
  input("b", "{\"text\":\"1\"}");  // no newline at the end
  input("a", "\xEF\xBB\xBF{\"text\":\"2\"}\n");
  const std::string packed = input("c", "{\"text\":\"3\"}\n");
  ASSERT_EQ(test::run_command("gzip -c " + packed + " > " + packed + ".gz; zstd -q " + packed).code, 0);
  config_.inputs.push_back(packed + ".gz");
  config_.inputs.push_back(packed + ".zst");
  run();
  expect_dataset("text", {{"1"}, {"2"}, {"3"}, {"3"}, {"3"}});
}

TEST_F(PreprocessTest, TakesAPatternAsTheFilesThatMatch) {
  input("p2.json", "{\"text\":\"2\"}\n");
  input("p10.json", "{\"text\":\"10\"}\n");
  config_.inputs = {dir_ / "p*.json"};
  run();
  expect_dataset("text", {{"10"}, {"2"}});
  config_.inputs = {dir_ / "q*.json"};
  EXPECT_THROW(run(), Error);
}

TEST_F(PreprocessTest, SkipsAndCountsBlankLines) {
  input("a", "\n{\"text\":\"x\"}\n \t\n\r\n\r{\"text\":\"y\"}\n");
  const PreprocessSummary summary = run();
  expect_dataset("text", {{"x"}, {"y"}});
  EXPECT_EQ(summary.blank_lines, 4);
  EXPECT_TRUE(logged("Blank lines skipped: 4"));
}

TEST_F(PreprocessTest, MakesAnEmptyDatasetOfAnEmptyInput) {
  input("a", "");
  run();
  expect_dataset("text", {});
  EXPECT_EQ(read_file(dir_ / "out_text_document.idx").size(), 42U);
  EXPECT_EQ(warnings(), 1U);
}

TEST_F(PreprocessTest, StopsAtTheFirstBadLineWithItsPlaceAndLeavesNothing) {
  const std::string good = "{\"text\":\"" + std::string(3000, 'x') + "\"}\n";
  std::string contents;
  for (int i = 0; i < 2000; ++i) contents += i == 1500 ? "{\"text\":nul}\n" : i == 1503 ? "{\n" : good;
  const std::string path = input("a", "\n" + contents);
  for (const int workers : {1, 7}) {
    config_.workers = workers;
    EXPECT_EQ(error(), path +
                           ":1502:9: malformed JSON: found \"n\", wanted a JSON value; correct the line, or "
                           "leave such lines out with --on-error skip (and --rejects FILE to keep them)");
    EXPECT_EQ(files(), std::vector<std::string>{"a"});
  }
}

TEST_F(PreprocessTest, CountsTheByteOrderMarkInPlaces) {
  const std::string path = input("a",
                                 "\xEF\xBB\xBF"
                                 "7\n");
  EXPECT_TRUE(error().starts_with(path + ":1:4: not a JSON object")) << error();
}

TEST_F(PreprocessTest, NumbersTheLinesOfEachInput) {
  input("a", "{\"text\":\"1\"}\n{\"text\":\"2\"}\n");
  const std::string path = input("b", "{\"text\":\"3\"}\n{\"nokey\":0}\n");
  EXPECT_TRUE(error().starts_with(path + ":2:1: missing key: no \"text\"")) << error();
}

TEST_F(PreprocessTest, SkipsBadLinesByReasonAndKeepsThem) {
  const std::string path =
      input("a",
            "{\"text\":\"1\"}\n{\"text\":7}\r\n[\n\n{\"text\":\"bad \xff\"}\n{\"text\":\"\\ud800\\u0041\"}\n"
            "{\"text\":\"2\"} x\n{\"text\":\"3\"}\n{\"text\":[\"\\n\",null]}");
  config_.on_error = OnError::kSkip;
  config_.rejects = dir_ / "rejects";
  const PreprocessSummary summary = run();
  expect_dataset("text", {{"1"}, {"3"}});
  EXPECT_EQ(read_file(dir_ / "rejects"),
            "{\"text\":7}\r\n[\n{\"text\":\"bad \xff\"}\n{\"text\":\"\\ud800\\u0041\"}\n{\"text\":\"2\"} "
            "x\n{\"text\":[\"\\n\",null]}\n");
  EXPECT_EQ(summary.skipped(), 6);
  EXPECT_EQ(summary.blank_lines, 1);
  EXPECT_EQ(summary.faults[static_cast<size_t>(DocumentFault::kWrongType)].count, 2);
  EXPECT_TRUE(logged("6 of 9 lines skipped"));
  EXPECT_TRUE(logged("2 value is not text: " + path + ":2:9, " + path + ":9:15"));
}

TEST_F(PreprocessTest, NamesOnlyTheFirstPlacesOfAReason) {
  std::string contents;
  for (int i = 0; i < 20000; ++i) contents += "x\n";
  const std::string path = input("a", contents);
  config_.on_error = OnError::kSkip;
  EXPECT_EQ(run().faults[static_cast<size_t>(DocumentFault::kSyntax)].count, 20000);
  EXPECT_TRUE(logged("20,000 malformed JSON: " + path + ":1:1, " + path + ":2:1, " + path + ":3:1, " + path +
                     ":4:1, " + path + ":5:1, …"));
  expect_dataset("text", {});
}

TEST_F(PreprocessTest, StopsWhereTheTokenizerRefusesAText) {
  const std::string path = input("a", "{\"text\":\"x\"}\n{\"text\":\"!\"}\n");
  EXPECT_TRUE(error().starts_with(path + ":2:1: refused by the tokenizer: '!' is no text")) << error();
  EXPECT_EQ(files(), std::vector<std::string>{"a"});
}

// In the second line, the tokenizer refuses the second key's text when the first key's text has already been
// tokenized.
TEST_F(PreprocessTest, RejectsTheLineWhoseTextTheTokenizerRefuses) {
  const std::string path = input("a",
                                 "{\"text\":\"1\",\"t\":\"a\"}\n{\"text\":[\"2\",\"\\u00e9\"],\"t\":\"!\"}\n{"
                                 "\"text\":\"3\",\"t\":\"c\"}\n");
  config_.json_keys = {"text", "t"};
  config_.on_error = OnError::kSkip;
  config_.rejects = dir_ / "rejects";
  const PreprocessSummary summary = run();
  expect_dataset("text", {{"1"}, {"3"}});
  expect_dataset("t", {{"a"}, {"c"}});
  EXPECT_EQ(summary.faults[static_cast<size_t>(DocumentFault::kRefused)].count, 1);
  EXPECT_EQ(read_file(dir_ / "rejects"), "{\"text\":[\"2\",\"\\u00e9\"],\"t\":\"!\"}\n");
  EXPECT_TRUE(logged("1 refused by the tokenizer: " + path + ":2:1"));
}

TEST_F(PreprocessTest, RejectsLinesThatAreTooLong) {
  const std::string path = input("a", "{\"text\":\"1\"}\n{\"text\":\"12345\"}\n{\"text\":\"123456\"}\n");
  config_.max_document_bytes = 16;  // the length of the second line, which is allowed
  EXPECT_TRUE(error().starts_with(
      path + ":3:17: too long: the line has more bytes than --max-document-bytes allows, 16"))
      << error();
  config_.on_error = OnError::kSkip;
  const PreprocessSummary summary = run();
  expect_dataset("text", {{"1"}, {"12345"}});
  EXPECT_EQ(summary.faults[static_cast<size_t>(DocumentFault::kTooLong)].count, 1);
}

// The second line, or the second element, has 1 TiB of which nothing is kept. Reading it to its end would
// take minutes to hours, so the run must stop before.
TEST_F(PreprocessTest, EndsAtTheBoundOfALineWithoutEnd) {
  for (const char* begin : {"{\"text\":\"1\"}\n{\"text\":\"", "[{\"text\":\"1\"},\n{\"text\":\""}) {
    const std::string path = input("a", begin);
    std::error_code no_sparse_files;
    std::filesystem::resize_file(path, uint64_t{1} << 40, no_sparse_files);
    if (no_sparse_files) GTEST_SKIP() << no_sparse_files.message();
    config_.max_document_bytes = 64;
    const auto started = std::chrono::steady_clock::now();
    EXPECT_TRUE(error().starts_with(path + ":2: the ")) << error();
    EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(20));
    std::filesystem::remove(path);
  }
}

TEST_F(PreprocessTest, LeavesShortDocumentsOutAndCountsThem) {
  input(
      "a",
      "{\"text\":\"abc\"}\n{\"text\":\"\\u00e9\\u4e2d\"}\n{\"text\":[\"a\",\"b\",\"😀\"]}\n{\"text\":\"\"}\n");
  config_.min_chars = 3;
  EXPECT_EQ(run().short_documents, 2);
  expect_dataset("text", {{"abc"}, {"a", "b", "😀"}});
  EXPECT_TRUE(logged("Left out with fewer than 3 characters: 2 documents"));
}

// The duplicates are within one batch, in different batches, at the ends of batches, and among long
// documents, whose ids are on the disk.
TEST_F(PreprocessTest, LeavesExactDuplicatesOut) {
  const std::string a(9'000'000, 'a');
  std::string contents;
  std::vector<Document> expected;
  std::set<Document> seen;
  std::mt19937 random(23);
  const auto add = [&](const Document& document) {
    std::string list;
    for (const std::string& text : document) list += (list.empty() ? "\"" : ",\"") + text + "\"";
    contents += "{\"id\":" + std::to_string(random()) + ",\"text\":[" + list + "]}\n";
    if (seen.insert(document).second) expected.push_back(document);
  };
  for (int i = 0; i < 3000; ++i) {
    if (i % 1000 == 500) add({a});
    add(random() % 2 ? Document{std::to_string(random() % 900)}
                     : Document{std::to_string(random() % 30), "x"});
  }
  input("a", contents);
  config_.dedup = Dedup::kExact;
  config_.append_eod = true;
  for (const int batch : {0, 7}) {
    config_.chunk_size = batch;
    const PreprocessSummary summary = run();
    expect_dataset("text", expected);
    EXPECT_EQ(summary.documents, static_cast<int64_t>(expected.size()));
    EXPECT_EQ(summary.duplicates, 3003 - summary.documents);
  }
}

TEST_F(PreprocessTest, TakesTheElementsOfAnArray) {
  const std::string path =
      input("a", "[ {\"text\":\"1\"},\r\n\n {\n\"text\":\"2\"\n}, {\"text\":3},{\"text\":\"4\"} ]\n");
  EXPECT_TRUE(error().starts_with(path + ":5:12: value is not text")) << error();
  config_.on_error = OnError::kSkip;
  config_.rejects = dir_ / "rejects";
  run();
  expect_dataset("text", {{"1"}, {"2"}, {"4"}});
  EXPECT_EQ(read_file(dir_ / "rejects"), "{\"text\":3}\n");
}

TEST_F(PreprocessTest, TakesTheCorpusFilesBelowAFolder) {
  std::filesystem::create_directories(dir_.path() / "in/b");
  for (const auto& [name, text] : {std::pair{"in/c.jsonl", "3"}, {"in/b/x.json", "2"}, {"in/a.json", "1"}})
    write_file(dir_ / name, "{\"text\":\"" + std::string(text) + "\"}\n");
  write_file(dir_ / "in/readme.txt", "no JSON");
  write_file(dir_ / "in/.hidden.json", "no JSON");
  make_sidecar(dir_ / "in/b/dataset", {})->commit();
  ASSERT_EQ(test::run_command("cd " + dir_ / "in" + " && gzip c.jsonl").code, 0);
  config_.inputs = {dir_ / "in"};
  run();
  expect_dataset("text", {{"1"}, {"2"}, {"3"}});
  config_.inputs = {dir_ / "in/b/dataset.json"};
  std::filesystem::create_directory(dir_.path() / "empty");
  config_.inputs = {dir_ / "empty"};
  EXPECT_THROW(run(), Error);
}

TEST_F(PreprocessTest, NotesTheGreatestIdBesideTheDataset) {
  input("a", "{\"text\":\"az\"}\n{\"text\":\"b\"}\n");
  run();
  const std::optional<Sidecar> sidecar = read_sidecar(dir_ / "out_text_document");
  ASSERT_TRUE(sidecar);
  EXPECT_EQ(sidecar->max_token_id, 'z');
  EXPECT_EQ(sidecar->documents, 2);
  EXPECT_EQ(sidecar->tokens, 3);
  EXPECT_EQ(sidecar->vocab_size, 257);
  EXPECT_EQ(sidecar->tokenizer, "ByteTokenizer");
}

TEST_F(PreprocessTest, ReportsEachLogInterval) {
  input("a", "{\"text\":\"1\"}\n{\"text\":\"2\"}\n{\"text\":\"3\"}\n{\"text\":\"4\"}\n{\"text\":\"5\"}\n");
  config_.log_interval = 2;
  run();
  EXPECT_TRUE(logged("Processed 2 documents ("));
  EXPECT_TRUE(logged("Processed 4 documents ("));
  EXPECT_FALSE(logged("Processed 5 documents ("));
}

// A failed batch may have been written in part, so the saved state must not include the batch.
TEST_F(PreprocessTest, ResumesBeforeTheBatchThatFailed) {
  const std::string good = "{\"text\":\"1\"}\n{\"text\":\"2\"}\n";
  input("a", good + "{\"text\":\"3\"}\nbad\n{\"text\":\"5\"}\n");
  config_.resume = true;
  const test::ByteTokenizer tokenizer;
  const TextTools tools{tokenizer, tokenizer.hash()};
  const std::vector<InputFile> files = look_at_inputs(config_.inputs);
  {
    const Interrupt interrupt;
    DocumentOutput output(config_, tools, {files});
    DocumentSource source(files, {{.bytes = 4096, .lines = 2}, 1}, interrupt, output.start());
    DocumentEncoder encoder(config_, tools);
    DocumentBatch batch;
    for (const bool fails : {false, true}) {
      ASSERT_TRUE(source.next(batch, [](size_t) {}));
      encoder.encode(batch);
      if (fails)
        EXPECT_THROW(output.take(batch), Error);
      else
        output.take(batch);
      output.save();  // as a stopped run does
      // take() clears the tokens that it has written
      EXPECT_EQ(batch.keys[0].tokens.size(), fails ? 1U : 0U);
    }
  }
  const DocumentOutput next(config_, tools, {files});
  EXPECT_EQ(next.start().reader.bytes, good.size());
}

TEST_F(PreprocessTest, LendsTheMemoryOfLinesThatNobodyNeeds) {
  input("a", "{\"text\":\"1\"}\n{\"text\":\"2\"}\nbad\n");
  config_.on_error = OnError::kSkip;
  const test::ByteTokenizer tokenizer;
  const TextTools tools{tokenizer, tokenizer.hash()};
  const Interrupt interrupt;
  const std::vector<InputFile> files = look_at_inputs(config_.inputs);
  DocumentSource source(files, {{.bytes = 4096, .lines = 1}, 1}, interrupt, {});
  DocumentEncoder encoder(config_, tools);
  const auto next = [&](DocumentBatch& batch) {
    encoder.lend_memory(batch);
    ASSERT_TRUE(source.next(batch, [](size_t) {}));
    encoder.encode(batch);
  };
  DocumentBatch first, second, bad;
  next(first);
  EXPECT_EQ(first.lines.capacity(), 0U);
  EXPECT_EQ(first.bytes, 13U);
  next(second);
  EXPECT_EQ(second.lines.capacity(), 0U);
  next(bad);
  EXPECT_EQ(bad.lines.raw_line(0), "bad\n");
  encoder.lend_memory(first);  // the memory of a batch with a bad line must not be lent
  EXPECT_EQ(first.lines.capacity(), 0U);
}

// The last batches are small, so that no worker has much left to do when the others have finished.
TEST_F(PreprocessTest, MakesTheLastBatchesSmallForSeveralWorkers) {
  constexpr size_t kLine = 128, kLines = 1 << 13, kLimit = 1 << 18;
  std::string text;
  for (size_t i = 0; i < kLines; ++i) text += std::string(kLine - 1, 'a') + "\n";
  input("a", text);
  const std::vector<InputFile> files = look_at_inputs(config_.inputs);
  const Interrupt interrupt;
  for (const size_t workers : {1, 2, 8}) {
    DocumentSource source(files, {{.bytes = kLimit, .lines = kLines}, workers}, interrupt, {});
    DocumentBatch batch;
    std::vector<size_t> sizes;
    while (source.next(batch, [](size_t) {})) sizes.push_back(batch.lines.bytes());
    EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), size_t{0}), kLine * kLines);
    EXPECT_TRUE(std::is_sorted(sizes.rbegin(), sizes.rend()));
    EXPECT_EQ(sizes.back() <= (1 << 14) + kLine, workers > 1) << workers;
    EXPECT_LE(sizes.size(), workers == 1 ? 4U : 60U) << workers;
  }
}

TEST_F(PreprocessTest, ComplainsOfEveryWrongOptionAtOnce) {
  config_.json_keys = {"a/b", "text", "text"};
  config_.inputs = {"-", "somewhere", "-"};
  config_.rejects = "somewhere";
  config_.resume = true;
  Problems problems;
  config_.validate(problems);
  EXPECT_EQ(problems.list().size(), 5U);
}

TEST_F(PreprocessTest, WantsAnotherNameForTheRejectsThanTheDatasets) {
  config_.on_error = OnError::kSkip;
  const std::string prefix = config_.prefix_of("text");
  const std::string other = (dir_.path() / ".." / dir_.path().filename() / "out_text_document").string();
  ASSERT_EQ(prefix, dir_ / "out_text_document");
  for (const std::string& name : {prefix, other}) {
    config_.rejects = name;
    Problems problems;
    config_.validate(problems);
    ASSERT_EQ(problems.list().size(), 1U) << name;
    EXPECT_EQ(problems.text().find("--rejects "), 0U) << problems.text();
  }
}

}  // namespace
}  // namespace megalith
