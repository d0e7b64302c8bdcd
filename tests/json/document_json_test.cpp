#include "libcore/json/document_json.h"

#include <chrono>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/machine/isa.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(kDigits.find(c));
    count += 6;
    if (count >= 8) out += static_cast<char>(bits >> (count -= 8) & 0xFF);
  }
  return out;
}

std::vector<std::string> texts_of(const std::string& field) {
  std::vector<std::string> texts;
  for (const std::string& part : split(field, ',')) texts.push_back(from_base64(part));
  texts.pop_back();  // removes the empty part after the last comma
  return texts;
}

std::vector<std::string> strings(std::span<const std::string_view> views) {
  return {views.begin(), views.end()};
}

/// Parses a line in heap memory of exactly its size, so that a sanitizer detects reads beyond the line.
std::optional<DocumentProblem> parse(DocumentParser& parser, std::vector<char>& line) {
  line.shrink_to_fit();
  return parser.parse(line);
}

std::optional<DocumentProblem> problem_of(std::string_view text, std::vector<std::string> keys = {"text"}) {
  DocumentParser parser(std::move(keys));
  std::vector<char> line(text.begin(), text.end());
  return parse(parser, line);
}

/// Runs each test for every instruction set that this processor has.
class DocumentParserIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > best_isa()) GTEST_SKIP() << "this processor runs " << name(best_isa());
  }
  const test::Variable chosen_{"MEGALITH_ISA", name(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(Isas, DocumentParserIsa, testing::Values(Isa::kGeneric, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& isa) { return std::string(name(isa.param)); });

// The goldens are Python's results, from tools/golden/make_document_json.py.
TEST_P(DocumentParserIsa, AgreesWithPython) {
  DocumentParser parser({"text", "k"});
  size_t cases = 0;
  for (const std::string& row :
       split(trim(read_file(test::test_data("json/goldens/document_json.txt"))), '\n')) {
    const std::vector<std::string> fields = split(row, '\t');
    const std::string text = from_base64(fields[0]);
    SCOPED_TRACE(quote(text));
    std::vector<char> line(text.begin(), text.end());
    const std::optional<DocumentProblem> problem = parse(parser, line);
    EXPECT_EQ(problem ? name(problem->fault) : "ok", fields[1]);
    if (problem) {
      EXPECT_EQ(std::string(line.begin(), line.end()), text) << "a refused line must stay as it is";
      EXPECT_LE(problem->byte, text.size());
    } else if (fields.size() == 4) {
      EXPECT_EQ(strings(parser.texts(0)), texts_of(fields[2]));
      EXPECT_EQ(strings(parser.texts(1)), texts_of(fields[3]));
    }
    ++cases;
  }
  EXPECT_GT(cases, 600U);
}

struct Place {
  const char* line;
  DocumentFault fault;
  size_t byte;
  const char* detail;
};

TEST(DocumentParser, NamesThePlaceAndWhatIsThere) {
  const Place places[] = {
      {R"({"text":"bad )"
       "\xff"
       R"("})",
       DocumentFault::kInvalidUtf8, 13, R"(found "\xff")"},
      {R"({"text":"cut)", DocumentFault::kSyntax, 8, "the string that begins here has no end"},
      {R"({"text":"a" "b"})", DocumentFault::kSyntax, 12, R"(found "\"", wanted ',' or '}')"},
      {R"({"text":)", DocumentFault::kSyntax, 8, "the line ends, wanted a JSON value"},
      {R"({'text':1})", DocumentFault::kSyntax, 1, R"(found "'", wanted a key in double quotes)"},
      {R"({"text":"a\q"})", DocumentFault::kSyntax, 10, "no JSON escape begins with this backslash"},
      {"{\"text\":\"a\x01\"}", DocumentFault::kControlCharacter, 10, R"(found "\x01", wanted it escaped)"},
      {R"({"text":"a"} é)", DocumentFault::kTrailing, 13, R"(found "é", wanted the end of the line)"},
      {R"([1])", DocumentFault::kNotObject, 0, "found a list, wanted {…}"},
      {R"({"a":1,"b":2})", DocumentFault::kMissingKey, 0, R"(no "text"; the line has "a", "b")"},
      {R"({"b":1,"txt":"a"})", DocumentFault::kMissingKey, 0,
       R"(no "text"; the line has "b", "txt"; give --json-keys txt)"},
      {R"({"id":1,"content":"a"})", DocumentFault::kMissingKey, 0,
       R"(no "text"; the line has "id", "content"; give --json-keys content)"},
      {R"({"the story":"a"})", DocumentFault::kMissingKey, 0,
       R"(no "text"; the line has "the story"; give --json-keys "the story")"},
      {R"({})", DocumentFault::kMissingKey, 0, R"(no "text"; the object is empty)"},
      {R"({"text": null})", DocumentFault::kWrongType, 9,
       R"("text" is null, wanted a string or a list of strings)"},
      {R"({"text":["a", 1]})", DocumentFault::kWrongType, 14,
       R"("text" is a list that holds a number, wanted only strings)"},
      {R"({"text":"ab\ud800"})", DocumentFault::kLoneSurrogate, 11,
       R"(\ud800 appears without its other half)"},
  };
  for (const Place& place : places) {
    SCOPED_TRACE(place.line);
    const std::optional<DocumentProblem> problem = problem_of(place.line);
    ASSERT_TRUE(problem);
    EXPECT_STREQ(name(problem->fault), name(place.fault));
    EXPECT_EQ(problem->byte, place.byte);
    EXPECT_EQ(problem->detail, place.detail);
  }
}

TEST(DocumentParser, RefusesDeepNestingAtOnce) {
  for (const char* opening : {"[", "{\"a\":"}) {
    std::string line = "{\"text\":\"x\",\"deep\":";
    for (int i = 0; i < 200000; ++i) line += opening;
    const auto start = std::chrono::steady_clock::now();
    const std::optional<DocumentProblem> problem = problem_of(line);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
    ASSERT_TRUE(problem);
    EXPECT_EQ(problem->fault, DocumentFault::kTooDeep);
  }
}

TEST(DocumentParser, AcceptsTheGreatestDepthAndNoMore) {
  const auto line = [](size_t levels) {
    const size_t lists = levels - 1;  // the object itself is one level
    return R"({"text":"x","deep":)" + std::string(lists, '[') + std::string(lists, ']') + "}";
  };
  EXPECT_FALSE(problem_of(line(kMaxDocumentDepth)));
  EXPECT_TRUE(problem_of(line(kMaxDocumentDepth + 1)));
}

// Parses every prefix of a line that has all kinds of tokens. Each prefix is in memory of exactly its size,
// so that a sanitizer detects reads beyond it.
TEST(DocumentParser, RefusesEveryTruncatedLine) {
  const std::string whole =
      R"( {"text":["a\u00e9\ud83d\ude00","b"],"n":[-1.5e+3,true,false,null,NaN,{"x":{}}],"é":"ü"})";
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_TRUE(problem_of(whole.substr(0, n))) << n;
  EXPECT_FALSE(problem_of(whole));
}

TEST(DocumentParser, ForgetsTheLineBefore) {
  DocumentParser parser({"text"});
  std::string first = R"({"text":["a","b"]})", second = R"({"other":1})", third = R"({"text":"c"})";
  EXPECT_FALSE(parser.parse(first));
  EXPECT_TRUE(parser.parse(second));
  EXPECT_FALSE(parser.parse(third));
  EXPECT_EQ(strings(parser.texts(0)), std::vector<std::string>{"c"});
}

// Decodes escapes between plain runs of all lengths, so that some lie across the boundaries of the blocks
// that are processed at once. The expected text is built together with the line.
TEST_P(DocumentParserIsa, DecodesEscapesWhereverTheyLie) {
  const std::pair<const char*, const char*> pieces[] = {
      {"\\n", "\n"},     {"\\\"", "\""},          {"\\\\", "\\"},       {"\\u00e9", "é"},
      {"\\u4e2d", "中"}, {"\\ud83d\\ude00", "😀"}, {"\\u0041", "A"},     {"é", "é"},
      {"\\/", "/"},      {"\\t", "\t"},           {"\\\\\\\\", "\\\\"},
  };
  std::mt19937 random(11);
  DocumentParser parser({"text"});
  for (int round = 0; round < 3000; ++round) {
    std::string written, meant;
    const size_t longest = round % 3 == 0 ? 3 : round % 3 == 1 ? 20 : 150;
    for (size_t n = random() % 40; n > 0; --n) {
      const std::string run(random() % longest, static_cast<char>('a' + random() % 26));
      const auto& [escape, text] = pieces[random() % std::size(pieces)];
      written += run + escape;
      meant += run + text;
    }
    const std::string line = "{\"text\":\"" + written + "\"}";
    std::vector<char> bytes(line.begin(), line.end());
    ASSERT_FALSE(parse(parser, bytes)) << line;
    ASSERT_EQ(parser.texts(0)[0], meant) << line;
  }
}

struct Outcome {
  std::string problem;
  std::vector<std::string> texts;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome_of(DocumentParser& parser, std::string_view text, size_t blanks) {
  std::vector<char> line(text.begin(), text.end());
  line.insert(line.end(), blanks, ' ');
  if (const std::optional<DocumentProblem> problem = parse(parser, line))
    return {concat(name(problem->fault), " at ", problem->byte, ": ", problem->detail), {}};
  return {"", strings(parser.texts(0))};
}

// Parses each line twice: as it is, and followed by so many blanks that it counts as a long line, whose
// strings are scanned first and decoded in place. The results must be equal. The lines are mutations of those
// in the goldens.
TEST_P(DocumentParserIsa, ReadsShortLinesAsLongOnes) {
  std::vector<std::string> seeds;
  for (const std::string& row :
       split(trim(read_file(test::test_data("json/goldens/document_json.txt"))), '\n'))
    seeds.push_back(from_base64(split(row, '\t')[0]));
  constexpr std::string_view kBytes = "\"\\u{}[]:, ndDcC08e\x01\xC3\xA9tx";
  std::mt19937 random(29);
  DocumentParser parser({"text"});
  size_t refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = seeds[random() % seeds.size()];
    for (size_t n = random() % 4; n > 0 && !text.empty(); --n) {
      const size_t at = random() % text.size();
      if (random() % 3 == 0)
        text.erase(at, 1 + random() % 4);
      else
        text.insert(at, 1 + random() % 2, kBytes[random() % kBytes.size()]);
    }
    const Outcome outcome = outcome_of(parser, text, 0);
    const bool at_end = outcome.problem.find("the line ends") != std::string::npos;
    Outcome of_long = outcome_of(parser, text, DocumentParser::kDecodedInPlace);
    if (at_end)
      // only the message may differ, since the two lines end at different places
      EXPECT_NE(of_long.problem, "") << quote(text);
    else
      ASSERT_EQ(of_long, outcome) << quote(text);
    refused += !outcome.problem.empty();
  }
  EXPECT_GT(refused, 1000U);
  EXPECT_LT(refused, 2900U);
}

std::string text_at(const std::string& key, std::string line) {
  DocumentParser parser({key});
  const std::optional<DocumentProblem> problem = parser.parse(line);
  if (problem) return std::string(name(problem->fault)) + ": " + problem->detail;
  std::string all;
  for (const std::string_view text : parser.texts(0)) all += std::string(text) + '|';
  return all;
}

TEST(DocumentParser, FollowsAPathWhereTheKeyItselfIsAbsent) {
  EXPECT_EQ(text_at("meta.text", R"({"meta":{"text":"in"}})"), "in|");
  EXPECT_EQ(text_at("meta.text", R"({"meta":{"text":"in"},"meta.text":"literal"})"), "literal|");
  EXPECT_EQ(text_at("meta.text", R"({"meta":{"x":1,"text":["a","b"],"y":{"text":"no"}},"text":"no"})"),
            "a|b|");
  EXPECT_EQ(text_at("a.b.c", R"({"a":{"b":{"c":"deep"},"c":"no"},"b":{"c":"no"},"c":"no"})"), "deep|");
  EXPECT_EQ(text_at("a.b", R"({"\u0061":{"b":"escaped"}})"), "escaped|");
}

TEST(DocumentParser, LetsTheLastDuplicateWinOnAPath) {
  EXPECT_EQ(text_at("a.b", R"({"a":{"b":"1","b":"2"}})"), "2|");
  EXPECT_EQ(text_at("a.b", R"({"a":{"b":"1"},"a":{"b":"2"}})"), "2|");
  EXPECT_TRUE(text_at("a.b", R"({"a":{"b":"1"},"a":{"c":"2"}})").starts_with("missing key: no \"a.b\""));
  EXPECT_TRUE(text_at("a.b", R"({"a":{"b":"1"},"a":3})").starts_with("missing key"));
}

TEST(DocumentParser, DoesNotFollowAPathThroughLists) {
  EXPECT_TRUE(text_at("a.b", R"({"a":[{"b":"1"}]})").starts_with("missing key"));
  EXPECT_TRUE(text_at("a.b.c", R"({"a":{"b":[{"c":"1"}]}})").starts_with("missing key"));
  EXPECT_TRUE(text_at("a.b", R"({"a":{"b":{"b":"1"}}})").starts_with("value is not text"));
}

/// A line whose keys come in a random order, some several times. Returns what json.loads finds under each of
/// `names` and under "in" of the object "deep": the last value.
std::string random_line(std::mt19937& random, const std::vector<std::string>& names,
                        std::map<std::string, std::string>& last) {
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::vector<std::string> members;
  for (size_t i = 0; i < 3 * names.size(); ++i) {
    const std::string& name = i < names.size() ? names[i] : names[pick(names.size())];
    const std::string value = concat("v", i);
    members.push_back(concat('"', name, "\": \"", value, '"'));
    last[name] = value;
    if (i % 7 == 0) members.push_back(concat("\"other", i, "\": [1, {\"", name, "\": \"not this\"}]"));
    if (i % 50 != 49) continue;
    members.push_back(concat("\"deep\": {\"in\": \"", value, "\", \"k1\": 0}"));
    last["deep.in"] = value;
  }
  return concat('{', join(members, ", "), '}');
}

TEST(DocumentParser, FindsEachOfManyKeysWhereverItStands) {
  std::mt19937 random(7);
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back(concat("k", i));
  std::vector<std::string> keys = names;
  keys.emplace_back("deep.in");
  DocumentParser parser(keys);
  for (int i = 0; i < 20; ++i) {
    std::map<std::string, std::string> last;
    const std::string text = random_line(random, names, last);
    std::vector<char> line(text.begin(), text.end());
    ASSERT_FALSE(parse(parser, line).has_value()) << text;
    for (size_t k = 0; k < keys.size(); ++k)
      ASSERT_EQ(strings(parser.texts(k)), std::vector<std::string>{last[keys[k]]}) << keys[k];
  }
}

}  // namespace
}  // namespace megalith
