// Plain text in (--text). The expected datasets are made from the same texts as lines of JSON, which this
// test writes.
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "libcore/base/error.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/io/files/file.h"
#include "tests/data/preprocess/preprocess_fixture.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

std::string json_line(const std::string& text) {
  std::string line = "{\"text\":\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      line += concat('\\', c);
    else if (c == '\n')
      line += "\\n";
    else if (c == '\r')
      line += "\\r";
    else if (c == '\t')
      line += "\\u0009";
    else
      line += c;
  }
  return line + "\"}\n";
}

class PreprocessText : public test::PreprocessFixture {
 protected:
  PreprocessText() { config_.text = TextUnit::kFile; }

  /// Expects the dataset that lines of JSON with these texts give with the same options.
  void expect_as_json(const std::vector<std::string>& texts) {
    std::string lines;
    for (const std::string& text : texts) lines += json_line(text);
    write_file(dir_ / "texts.jsonl", lines);
    PreprocessConfig json = config_;
    json.inputs = {dir_ / "texts.jsonl"};
    json.output_prefix = dir_ / "json";
    json.text = TextUnit::kNone;
    json.rejects.clear();
    json.resume = false;
    json.max_document_bytes = 0;
    preprocess(json, test::ByteTokenizer());
    for (const char* end : {".bin", ".idx"})
      EXPECT_EQ(read_file(config_.prefix_of("text") + end), read_file(json.prefix_of("text") + end)) << end;
  }
};

/// Random characters of one to four bytes, without a blank line, and neither blank nor ended by a line end.
std::string random_paragraph(std::mt19937& random, size_t characters) {
  const std::vector<std::string> kCharacters = {"a", "\"", "\\",  "é",     "中", "😀",
                                                " ", "\t", "x\n", "y\r\n", "z\r"};
  std::string text = "b";
  while (characters-- > 0) text += kCharacters[random() % kCharacters.size()];
  return text + "e";
}

TEST_F(PreprocessText, MakesOneDocumentOfEachFile) {
  const std::vector<std::string> texts = {"one\n", "two\r\n\r\n\"lines\"\n\n", "\n three", "x"};
  for (size_t i = 0; i < texts.size(); ++i) input(concat("f", i, ".txt"), texts[i]);
  for (const bool eod : {false, true}) {
    config_.append_eod = eod;
    const PreprocessSummary summary = run();
    EXPECT_EQ(summary.documents, 4);
    EXPECT_EQ(summary.lines, 4);
    expect_as_json(texts);
  }
  const Json options = read_sidecar(dir_ / "out_text_document")->options;
  EXPECT_EQ(options["text"].as_string(), "file");
  EXPECT_EQ(options.find("json_key"), nullptr);
}

TEST_F(PreprocessText, MakesTheSameOfRandomTextsWhateverTheWorkersAndBatches) {
  std::mt19937 random(31);
  std::vector<std::string> texts;
  std::string joined = "\n \n";
  for (size_t size = 0; size < 3'000'000; size += texts.back().size()) {
    texts.push_back(random_paragraph(random, random() % 50 == 0 ? random() % 200'000 : random() % 300));
    joined += texts.back();
    joined += std::vector<std::string>{"\n\n", "\r\n\t\r\n", "\r\r", "\n \n\n"}[random() % 4];
  }
  config_.text = TextUnit::kParagraph;
  config_.append_eod = true;
  input("all.txt", joined);
  for (const int workers : {1, 2, 7}) {
    for (const int batch : {0, 1, 25}) {
      config_.workers = workers;
      config_.chunk_size = batch;
      run();
      expect_as_json(texts);
    }
  }
  config_.text = TextUnit::kFile;
  config_.inputs.clear();
  texts.resize(300);
  for (size_t i = 0; i < texts.size(); ++i) input(concat(i, ".txt"), texts[i]);
  for (const int workers : {1, 7}) {
    config_.workers = workers;
    run();
    expect_as_json(texts);
  }
}

// The ids of a text above 8 MiB are computed in parts and kept on the disk until they are written.
TEST_F(PreprocessText, MakesTheSameOfVeryLongTexts) {
  const std::string a(9'000'000, 'a'), b = std::string(5'000'000, 'b') + "\n" + std::string(5'000'000, 'c');
  config_.append_eod = true;
  for (const TextUnit unit : {TextUnit::kFile, TextUnit::kParagraph}) {
    config_.inputs.clear();
    config_.text = unit;
    input("a.txt", a);
    input("s.txt", "s");
    input("b.txt", b);
    run();
    expect_as_json({a, "s", b});
    EXPECT_EQ(read_sidecar(dir_ / "out_text_document")->max_token_id, 256);
  }
}

TEST_F(PreprocessText, TakesTheTextsBelowAFolder) {
  fs::create_directories(dir_ / "in/b");
  for (const auto& [name, text] : {std::pair{"in/c.txt", "3"}, {"in/b/x.txt", "2"}, {"in/a.txt", "1"}})
    write_file(dir_ / name, text);
  write_file(dir_ / "in/records.jsonl", "{}");
  write_file(dir_ / "in/.hidden.txt", "no");
  write_file(dir_ / "in/readme.md", "no");
  ASSERT_EQ(test::run_command("cd " + dir_ / "in" + " && gzip c.txt && ln -s ../in b/circle").code, 0);
  config_.inputs = {dir_ / "in"};
  run();
  expect_as_json({"1", "2", "3"});
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kNoInput);
    return e.what();
  }
  return "no error";
}

TEST_F(PreprocessText, NamesTheOptionThatReadsAFolder) {
  fs::create_directories(dir_ / "texts");
  fs::create_directories(dir_ / "json");
  fs::create_directories(dir_ / "pages");
  write_file(dir_ / "texts/a.txt", "a");
  write_file(dir_ / "texts/b.txt.gz", "b");
  write_file(dir_ / "json/a.jsonl", "{}");
  write_file(dir_ / "pages/a.md", "a");
  const auto message = [&](const char* folder, TextUnit unit) {
    config_.inputs = {dir_ / folder};
    config_.text = unit;
    return refusal([&] { run(); });
  };
  const std::string none = message("texts", TextUnit::kNone);
  EXPECT_NE(none.find("texts: no .json, .jsonl or .parquet file is in this folder"), std::string::npos)
      << none;
  EXPECT_NE(none.find("it has 2 of .txt, which are read with --text file"), std::string::npos) << none;
  const std::string json = message("json", TextUnit::kFile);
  EXPECT_NE(json.find("it has 1 of .json, .jsonl or .parquet, which are read without --text"),
            std::string::npos)
      << json;
  const std::string pages = message("pages", TextUnit::kParagraph);
  EXPECT_NE(pages.find("no .txt file is in this folder"), std::string::npos) << pages;
  EXPECT_NE(pages.find("*.md"), std::string::npos) << pages;
  config_.inputs = {dir_ / "pages/?.md"};
  run();
  expect_as_json({"a"});
}

// Training takes all files of a folder as text; here only .txt, so the others are counted.
TEST_F(PreprocessText, SaysWhichFilesOfAFolderItReads) {
  fs::create_directories(dir_ / "notes/more");
  write_file(dir_ / "notes/a.txt", "a");
  const auto said = [&] {
    config_.inputs = {dir_ / "notes"};
    logged_.clear();
    run();
    std::string lines;
    for (const std::string& line : logged_) lines += line + '\n';
    return lines;
  };
  EXPECT_EQ(said().find("; name others"), std::string::npos);
  for (const char* name : {"notes/b.md", "notes/more/c.cpp", "notes/d.json", "notes/.hidden"})
    write_file(dir_ / name, "x");
  const std::string mixed = said();
  EXPECT_NE(mixed.find(concat(
                "notes: reading 1 of 4 files, those of .txt; name others by a quoted pattern, such as '",
                dir_ / "notes", "/*.md'")),
            std::string::npos)
      << mixed;
  expect_as_json({"a"});
}

TEST_F(PreprocessText, ReadsCompressedFilesAndPipes) {
  const std::string text = "a\nb\n\nc\n";
  input("t.txt", text);
  ASSERT_EQ(test::run_command("cd " + dir_ / "." + " && gzip -k t.txt && zstd -q t.txt && xz -k t.txt").code,
            0);
  for (const char* end : {".gz", ".zst", ".xz"}) config_.inputs.push_back(dir_ / concat("t.txt", end));
  run();
  expect_as_json({text, text, text, text});
  config_.text = TextUnit::kParagraph;
  run();
  expect_as_json({"a\nb", "c", "a\nb", "c", "a\nb", "c", "a\nb", "c"});
  const std::string pipe = dir_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  config_.inputs = {pipe};
  for (const TextUnit unit : {TextUnit::kFile, TextUnit::kParagraph}) {
    config_.text = unit;
    std::thread writer([&] { test::run_command("cat " + dir_ / "t.txt" + " > " + pipe); });
    run();
    writer.join();
    expect_as_json(unit == TextUnit::kFile ? std::vector<std::string>{text}
                                           : std::vector<std::string>{"a\nb", "c"});
  }
}

TEST_F(PreprocessText, NamesTheFirstOfManyFiles) {
  for (int i = 0; i < 25; ++i) input(concat(i, ".txt"), "x");
  run();
  EXPECT_NE(log_text().find("Opening " + dir_ / "19.txt"), std::string::npos) << log_text();
  EXPECT_EQ(log_text().find("Opening " + dir_ / "20.txt"), std::string::npos) << log_text();
  EXPECT_NE(log_text().find("Opening 5 more\n"), std::string::npos) << log_text();
}

TEST_F(PreprocessText, SkipsAndCountsBlankFiles) {
  input("a.txt", "x");
  input("b.txt", " \n\t\r\n");
  input("c.txt", "");
  EXPECT_EQ(run().blank_lines, 1);
  expect_as_json({"x"});
  EXPECT_NE(log_text().find("Blank texts skipped: 1"), std::string::npos) << log_text();
}

TEST_F(PreprocessText, LeavesShortTextsAndDuplicatesOut) {
  config_.text = TextUnit::kParagraph;
  config_.min_chars = 3;
  config_.dedup = Dedup::kExact;
  input("a.txt", "abc\n\néé\n\nabc\n\nab\n\nabcd\n\nabc");
  input("b.txt", "中中中\n\nabcd");
  const PreprocessSummary summary = run();
  EXPECT_EQ(summary.short_documents, 2);
  EXPECT_EQ(summary.duplicates, 3);
  expect_as_json({"abc", "abcd", "中中中"});
}

TEST_F(PreprocessText, SplitsTextsInSentences) {
  const test::Variable models("NLTK_DATA", test::test_data("text/goldens/punkt"));
  config_.split_sentences = true;
  input("a.txt", "Dr. Ito came. He sang.\n\nOK\n");
  run();
  expect_as_json({"Dr. Ito came. He sang.\n\nOK\n"});
  EXPECT_EQ(read_sidecar(dir_ / "out_text_sentence")->sequences, 3);
}

TEST_F(PreprocessText, NamesTheByteThatIsNoUtf8) {
  const std::string path = input("a.txt", "first\r\nna\xEFve caf\xE9\n");
  for (const TextUnit unit : {TextUnit::kFile, TextUnit::kParagraph}) {
    config_.text = unit;
    EXPECT_EQ(error(),
              path +
                  ":2:3: invalid UTF-8: found \"\\xef\"; it looks like Latin-1; convert it with "
                  "`iconv -f latin1 -t utf-8 < " +
                  path + " > " + dir_ / "a.utf8.txt" +
                  "`, or leave such texts out with --on-error skip (and --rejects FILE to keep them)");
  }
  config_.inputs.clear();
  const std::string broken = input("b.txt", "é\n\n\n ü\xFF");
  config_.text = TextUnit::kParagraph;
  EXPECT_EQ(error(), broken +
                         ":4:4: invalid UTF-8: found \"\\xff\"; correct the text, or leave such texts out "
                         "with --on-error skip (and --rejects FILE to keep them)");
  config_.inputs.clear();
  const std::string wide = input("c.txt", std::string("\xFF\xFEH\0i\0\n\0", 8));
  EXPECT_TRUE(error().starts_with(wide + ":1:1: invalid UTF-8: found \"\\xff\"; it looks like UTF-16; "
                                         "convert it with `iconv -f utf-16 -t utf-8 < "))
      << error();
}

TEST_F(PreprocessText, SkipsBadTextsByReasonAndKeepsThem) {
  config_.text = TextUnit::kParagraph;
  config_.on_error = OnError::kSkip;
  config_.rejects = dir_ / "rejects";
  const std::string path =
      input("a.txt", "one\n\nbad \xFF\r\nmore\r\n\r\n!\n\ntwo\nlines\n\n123456789012345\n\nlast\xFF");
  config_.max_document_bytes = 14;
  const PreprocessSummary summary = run();
  expect_as_json({"one", "two\nlines"});
  EXPECT_EQ(read_file(dir_ / "rejects"), "bad \xFF\r\nmore\r\n\n!\n\n123456789012345\n\nlast\xFF\n\n");
  EXPECT_EQ(summary.skipped(), 4);
  EXPECT_NE(log_text().find("4 of 6 texts skipped"), std::string::npos) << log_text();
  EXPECT_NE(log_text().find("2 invalid UTF-8: " + path + ":3:5, " + path + ":13:5"), std::string::npos)
      << log_text();
  EXPECT_NE(log_text().find("1 too long: " + path + ":11:15"), std::string::npos) << log_text();
  EXPECT_NE(log_text().find("1 refused by the tokenizer: " + path + ":6:1"), std::string::npos) << log_text();
}

TEST_F(PreprocessText, KeepsAVeryLongTextThatIsRefused) {
  const std::string bad = "!" + std::string(9'000'000, 'a') + "\n";
  config_.on_error = OnError::kSkip;
  config_.rejects = dir_ / "rejects";
  input("a.txt", bad);
  input("b.txt", "good");
  run();
  expect_as_json({"good"});
  EXPECT_EQ(read_file(dir_ / "rejects"), bad);
}

// The text has 1 TiB, of which nothing is kept: reading it to its end would take minutes to hours.
TEST_F(PreprocessText, EndsAtTheBoundOfATextWithoutEnd) {
  const std::string path = input("a.txt", "a");
  std::error_code no_sparse_files;
  fs::resize_file(path, uint64_t{1} << 40, no_sparse_files);
  if (no_sparse_files) GTEST_SKIP() << no_sparse_files.message();
  config_.max_document_bytes = 64;
  for (const TextUnit unit : {TextUnit::kFile, TextUnit::kParagraph}) {
    config_.text = unit;
    EXPECT_TRUE(error().starts_with(path + ":1: the text has more than ")) << error();
  }
}

TEST_F(PreprocessText, HasNoKeys) {
  config_.inputs = {"a.txt"};
  config_.json_keys = {"content"};
  Problems problems;
  config_.validate(problems);
  ASSERT_EQ(problems.list().size(), 1U);
  EXPECT_EQ(problems.text().find("--text and --json-keys contradict each other"), 0U) << problems.text();
}

// Without --text, the message says what the input is and how it is read.
TEST_F(PreprocessText, IsRecognisedWhereJsonWasWanted) {
  config_.text = TextUnit::kNone;
  const auto message = [&](const std::string& contents) {
    config_.inputs.clear();
    input("a.dat", contents);
    return error();
  };
  const auto expect = [&](const std::string& contents, const std::string& part) {
    const std::string found = message(contents);
    EXPECT_NE(found.find(part), std::string::npos) << found;
  };
  expect("\nCall me Ishmael.\n",
         ":2:1: malformed JSON: found \"C\", wanted a JSON value; it looks like plain text");
  expect("{\n\"text\": \"a\"\n}\n", "it looks like indented JSON");
  expect("id,text\n1,a\n", "it looks like a table (CSV)");
  expect(std::string("\xFF\xFE{\0", 4), "it looks like UTF-16");
  expect(std::string("PAR1\x15\0\x15", 7), "damaged Parquet data in its last bytes");
  expect("[Verse 1]\nAh\n", "it looks like plain text");
  expect("{\"text\":\"caf\xE9\"}\n", "it looks like Latin-1");
  expect("{\"text\":\"a\"}\nbad\n", "correct the line, or leave such lines out");
}

}  // namespace
}  // namespace megalith
