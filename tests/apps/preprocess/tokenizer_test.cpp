#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

class TokenizerApp : public testing::Test {
 protected:
  CommandResult train(const std::string& options) {
    return run_command(app("tokenizer") + " train " + options);
  }
  std::string corpus() const { return test_data("text/data/corpus.jsonl"); }
  void expect_refusal(const CommandResult& result, int code, const std::string& part) {
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_FALSE(file_exists(dir_ / "out"));
  }
  TempDir dir_;
};

TEST_F(TokenizerApp, WritesWhatHuggingFaceTrains) {
  const CommandResult result =
      train("--input " + corpus() + " --vocab-size 700 --output " + dir_ / "out" + " --workers 3");
  EXPECT_EQ(result.code, 0) << result.err;
  for (const char* name : {"vocab.json", "merges.txt", "tokenizer.json"})
    EXPECT_EQ(read_file(dir_ / "out/" + name), read_file(test_data("text/goldens/trained/") + name)) << name;
}

TEST_F(TokenizerApp, ReadsStandardInputAndOtherKeys) {
  const CommandResult result =
      run_command("sed 's/^{\"text\"/{\"content\"/' " + corpus() + " | " + app("tokenizer") +
                  " train --input - --json-keys content --vocab-size 700 --output " + dir_ / "out");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(read_file(dir_ / "out/tokenizer.json"),
            read_file(test_data("text/goldens/trained/tokenizer.json")));
}

TEST_F(TokenizerApp, TakesPlainText) {
  write_file(dir_ / "a.txt", "ab ab ab\n");
  const CommandResult result =
      train("--text file --input " + dir_ / "a.txt" + " --vocab-size 300 --output " + dir_ / "out");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.err.find("only 259 tokens"), std::string::npos) << result.err;  // "ab" and " ab"
}

// A folder of texts gives the tokenizer that its files give when they are named, and that lines of JSON give.
TEST_F(TokenizerApp, TakesAFolderOfTexts) {
  std::filesystem::create_directories(dir_ / "notes/more");
  std::filesystem::create_directories(dir_ / "json");
  write_file(dir_ / "notes/a.txt", "the harbour the harbour\nat night\n");
  write_file(dir_ / "notes/more/b.txt", "the night\n\n\nharbour lights");
  write_file(dir_ / "notes/no.md", "zzzz zzzz zzzz");
  write_file(dir_ / "json/c.jsonl",
             "{\"text\": \"the harbour the harbour\\nat night\\n\"}\n{\"text\": \"the night\\n\\n\\nharbour "
             "lights\"}\n");
  const auto tokenizer = [&](const std::string& options) {
    const CommandResult result = train(options + " --vocab-size 280 --output " + dir_ / "made");
    EXPECT_EQ(result.code, 0) << result.err;
    return read_file(dir_ / "made/tokenizer.json");
  };
  const std::string folder = tokenizer("--text file --input " + dir_ / "notes");
  EXPECT_EQ(folder,
            tokenizer("--text file --input " + dir_ / "notes/a.txt" + " " + dir_ / "notes/more/b.txt"));
  EXPECT_EQ(folder, tokenizer("--input " + dir_ / "json"));
  EXPECT_NE(folder, tokenizer("--text paragraph --input " + dir_ / "notes"));
  const std::string texts = "--input " + dir_ / "notes" + " --output " + dir_ / "out";
  expect_refusal(train(texts), 66, "--text file");
  expect_refusal(train(texts + " --text file --json-keys x"), 64, "--text and --json-keys");
}

TEST_F(TokenizerApp, LeavesNothingBehindWhenItFails) {
  const std::string output = " --output " + dir_ / "out";
  write_file(dir_ / "bad.jsonl", "{\"text\": \"fine\"}\n{\"text\": 3}\n");
  expect_refusal(train("--input " + dir_ / "bad.jsonl" + output), 65, "bad.jsonl:2:");
  expect_refusal(train("--input " + dir_ / "none.jsonl" + output), 66, "none.jsonl");
  expect_refusal(train("--input " + corpus() + " --vocab-size 256" + output), 64, "vocab-size");
  expect_refusal(train("--input " + corpus()), 64, "--output");
  expect_refusal(train("--imput " + corpus() + output), 64, "did you mean \"--input\"");
  expect_refusal(run_command(app("tokenizer") + " tarin --input " + corpus() + output), 64, "train");
}

TEST_F(TokenizerApp, EncodesLinesAndDecodesThem) {
  const std::string files = " --vocab-file " + test_data("text/goldens/trained/vocab.json") +
                            " --merge-file " + test_data("text/goldens/trained/merges.txt");
  const std::string model = " --tokenizer-model " + test_data("text/goldens/trained/tokenizer.json");
  const CommandResult ids =
      run_command("printf 'They kept\\n\\nthe books' | " + app("tokenizer") + " encode" + files);
  EXPECT_EQ(ids.code, 0) << ids.err;
  EXPECT_EQ(std::count(ids.out.begin(), ids.out.end(), '\n'), 3);
  write_file(dir_ / "ids", ids.out);
  const CommandResult text = run_command(app("tokenizer") + " decode --input " + dir_ / "ids" + model);
  EXPECT_EQ(text.out, "They kept\n\nthe books\n") << text.err;
  write_file(dir_ / "texts", "\"a\\nb\"\n\"\"\n");
  const CommandResult json = run_command(app("tokenizer") + " encode --json --input " + dir_ / "texts" +
                                         model + " | " + app("tokenizer") + " decode --json" + model);
  EXPECT_EQ(json.out, "\"a\\nb\"\n\"\"\n") << json.err;
}

TEST_F(TokenizerApp, WritesTheSameRowsWithAnyNumberOfThreads) {
  const std::string model = " --tokenizer-model " + test_data("text/goldens/trained/tokenizer.json");
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += concat("The books of harbour ", i, i % 7 == 0 ? "\r\n" : "\n");
  for (int i = 0; i < 20'000; ++i) text += "a line longer than a batch ";
  text += "\nThe last\n";
  write_file(dir_ / "texts", text);
  const auto rows = [&](const std::string& command, const std::string& file, int workers) {
    const CommandResult result = run_command(
        concat(app("tokenizer"), ' ', command, " --workers ", workers, " --input ", dir_ / file, model));
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  const std::string ids = rows("encode", "texts", 1);
  EXPECT_TRUE(rows("encode", "texts", 4) == ids);
  write_file(dir_ / "ids", ids);
  std::erase(text, '\r');
  EXPECT_TRUE(rows("decode", "ids", 1) == text);
  EXPECT_TRUE(rows("decode", "ids", 4) == text);
}

// A text that begins with a bracket was taken for a JSON array before November 2026.
TEST_F(TokenizerApp, TakesLinesThatBeginWithABracket) {
  const std::string model = " --tokenizer-model " + test_data("text/goldens/trained/tokenizer.json");
  const CommandResult text = run_command("printf '[a] b, c\\n[d\\n' | " + app("tokenizer") + " encode" +
                                         model + " | " + app("tokenizer") + " decode" + model);
  EXPECT_EQ(text.out, "[a] b, c\n[d\n") << text.err;
}

// Lines that are not as most are, each of which is read by itself: blanks at its ends, more than one between
// ids, many digits, another line end, none.
TEST_F(TokenizerApp, DecodesLinesOfAnyForm) {
  const std::string model = " --tokenizer-model " + test_data("text/goldens/trained/tokenizer.json");
  const CommandResult usual =
      run_command("printf '30 31\\n\\n32\\n' | " + app("tokenizer") + " decode" + model);
  EXPECT_EQ(std::count(usual.out.begin(), usual.out.end(), '\n'), 3) << usual.err;
  const CommandResult odd =
      run_command("printf ' 30  31 \\r\\n\\n0000000032' | " + app("tokenizer") + " decode" + model);
  EXPECT_EQ(odd.out, usual.out) << odd.err;
}

TEST_F(TokenizerApp, WritesTheRowsBeforeABadLine) {
  const std::string model = " --tokenizer-model " + test_data("text/goldens/trained/tokenizer.json");
  const auto expect = [&](const std::string& lines, const std::string& command, const std::string& message) {
    const CommandResult bad =
        run_command("printf '" + lines + "' | " + app("tokenizer") + ' ' + command + model);
    EXPECT_EQ(bad.code, 65);
    EXPECT_NE(bad.err.find("-:3: " + message), std::string::npos) << bad.err;
    EXPECT_EQ(std::count(bad.out.begin(), bad.out.end(), '\n'), 2) << bad.out;
  };
  expect("0\\n1 2\\nx\\n3", "decode", "\"x\" is not a token id");
  expect("0\\n1 2\\n5000\\n3\\n", "decode", "token id 5000");
  expect("a\\nb\\nc\\377\\nd\\n", "encode", "byte 2 is not UTF-8");
  expect("\"a\"\\n\"b\"\\n[]\\n\"d\"\\n", "encode --json", "found [], wanted a JSON string");
}

TEST_F(TokenizerApp, NamesTheLineThatIsNoTextOrNoIds) {
  const std::string model = " --tokenizer-model " + test_data("text/goldens/trained/tokenizer.json");
  expect_refusal(run_command("printf '\\377' | " + app("tokenizer") + " encode" + model), 65,
                 "-:1: byte 1 is not UTF-8");
  expect_refusal(run_command("echo 5 x | " + app("tokenizer") + " decode" + model), 65,
                 "-:1: \"x\" is not a token id");
  expect_refusal(run_command("echo 5000 | " + app("tokenizer") + " decode" + model), 65,
                 "-:1: token id 5000");
  expect_refusal(run_command("echo 7 | " + app("tokenizer") + " encode --json" + model), 65,
                 "wanted a JSON string");
  expect_refusal(run_command(app("tokenizer") + " encode --output x" + model), 64, "--output is for train");
}

}  // namespace
}  // namespace megalith::test
