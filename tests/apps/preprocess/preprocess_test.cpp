#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/io/files/file.h"
#include "tests/support/compiler.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// A folder with the files that tools/golden/make_preprocess.py writes, in which commands run.
class PreprocessApp : public testing::Test {
 protected:
  PreprocessApp() {
    fs::copy(test_data("apps/fixtures/wiki/text"), dir_.path() / "text", fs::copy_options::recursive);
    for (const char* name : {"vocab.json", "merges.txt"})
      fs::copy_file(test_data("apps/fixtures/wiki/") + name, dir_.path() / name);
  }
  CommandResult run(const std::string& command) {
    const std::string folder = fs::path(app("preprocess")).parent_path();
    return run_command("cd " + dir_.path().string() + " && export PATH=" + folder + ":$PATH && " + command);
  }
  /// Runs megalith-preprocess with the fixture's tokenizer.
  CommandResult preprocess(const std::string& options) {
    return run("megalith-preprocess " + kTokenizer + options);
  }
  void expect_golden(const std::string& name, const std::string& prefix) {
    for (const char* end : {".bin", ".idx"}) {
      SCOPED_TRACE(prefix + end);
      ASSERT_TRUE(file_exists(dir_ / (prefix + end)));
      EXPECT_EQ(read_file(dir_ / (prefix + end)),
                read_file(test_data("apps/fixtures/wiki/goldens/text/" + name + "_text_document" + end)));
    }
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_.path())) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  const std::string kTokenizer =
      "--tokenizer-type GPT2BPETokenizer --vocab-file vocab.json --merge-file merges.txt ";
  TempDir dir_;
};

// Runs the commands of the PAI tutorial, with only the executable replaced. The goldens come from Megatron.
TEST_F(PreprocessApp, RunsTheDocumentedPipeline) {
  const CommandResult result = run(R"(
find text/ -type d | sed 's|text|mkdir -p datasets/text|' | sh
find text/ -type f -name "wiki_*" | xargs -P 2 -I{} \
bash -c "megalith-preprocess --input {} \
--output-prefix datasets/{} \
--vocab-file vocab.json \
--dataset-impl mmap \
--tokenizer-type GPT2BPETokenizer \
--merge-file merges.txt \
--append-eod \
--workers 1 --chunk-size 1024")");
  EXPECT_EQ(result.code, 0) << result.all();
  EXPECT_EQ(result.err, "");  // the log goes to stdout, like upstream's log
  for (const char* name : {"AA/wiki_00", "AA/wiki_01", "AB/wiki_02"})
    expect_golden(name, concat("datasets/text/", name, "_text_document"));
}

TEST_F(PreprocessApp, PrintsMegatronsLines) {
  const CommandResult result =
      preprocess("--input text/AB/wiki_02 --output-prefix out --log-interval 20 --workers 2 --chunk-size 1");
  EXPECT_EQ(result.code, 0);
  size_t at = 0;
  for (const char* line :
       {"Opening text/AB/wiki_02\n", "> building GPT2BPETokenizer tokenizer ...\n",
        " > padded vocab (size: 420) with 92 dummy tokens (new size: 512)\n", "Vocab size: 420\n",
        "Output prefix: out\n", "Time to startup: ", "Processed 20 documents (", "Processed 40 documents (",
        "Done! Now finalizing.\n"}) {
    const size_t found = result.all().find(line, at);
    ASSERT_NE(found, std::string::npos) << line << "is not in its place in\n" << result.all();
    at = found;
  }
}

// CodeParrot's command writes --vocab for --vocab-file, uses another key, and asks for more workers than
// there is work for.
TEST_F(PreprocessApp, TakesTheOtherTutorialsSpelling) {
  write_file(dir_ / "code.json", "{\"content\":\"x = 1\\n\",\"repo\":\"r\"}\n");
  const CommandResult result =
      run("megalith-preprocess --input code.json --output-prefix codeparrot --vocab vocab.json "
          "--dataset-impl mmap --tokenizer-type GPT2BPETokenizer --merge-file merges.txt --json-keys content "
          "--workers 32 --chunk-size 25 --append-eod");
  EXPECT_EQ(result.code, 0) << result.all();
  EXPECT_TRUE(file_exists(dir_ / "codeparrot_content_document.idx"));
  EXPECT_NE(result.all().find("(368 MiB, twice the longest line)"), std::string::npos)  // 128 + 8 * (32 - 2)
      << result.all();
}

// The sidecar's hash of the tokenizer tells merge and pretrain whether datasets belong together. It must
// depend on the tokenizer's contents, not on its path.
TEST_F(PreprocessApp, NotesTheTokenizerBesideTheDataset) {
  const auto hash = [&](const std::string& command, const char* prefix) {
    EXPECT_EQ(run("megalith-preprocess --input text/AA/wiki_00 --tokenizer-type GPT2BPETokenizer " + command +
                  " --output-prefix " + prefix)
                  .code,
              0);
    const std::optional<Sidecar> sidecar = read_sidecar(dir_ / (std::string(prefix) + "_text_document"));
    return sidecar ? sidecar->tokenizer_hash : "no sidecar";
  };
  const std::string first = hash("--vocab-file vocab.json --merge-file merges.txt", "a");
  EXPECT_EQ(first.size(), 64U);
  EXPECT_EQ(run("mkdir other && cp vocab.json merges.txt other && sed '$d' merges.txt > fewer.txt").code, 0);
  EXPECT_EQ(hash("--vocab-file other/vocab.json --merge-file other/merges.txt", "b"), first);
  EXPECT_NE(hash("--vocab-file vocab.json --merge-file fewer.txt", "c"), first);
}

TEST_F(PreprocessApp, ReadsStdinAndCompressedFiles) {
  EXPECT_EQ(run("cat text/AA/wiki_00 | megalith-preprocess --input - --output-prefix piped --append-eod " +
                kTokenizer)
                .code,
            0);
  expect_golden("AA/wiki_00", "piped_text_document");
  EXPECT_EQ(run("gzip -k text/AA/wiki_00 && zstd -q text/AA/wiki_01").code, 0);
  EXPECT_EQ(preprocess("--append-eod --input text/AA/wiki_00.gz --output-prefix gz").code, 0);
  expect_golden("AA/wiki_00", "gz_text_document");
  EXPECT_EQ(preprocess("--append-eod --input text/AA/wiki_01.zst --output-prefix zst").code, 0);
  expect_golden("AA/wiki_01", "zst_text_document");
}

TEST_F(PreprocessApp, StopsAtOnceWhileStdinStaysOpen) {
  const auto start = std::chrono::steady_clock::now();
  const CommandResult result =
      run("mkfifo pipe; (echo bad; exec sleep 30) > pipe & megalith-preprocess --input - --output-prefix out "
          "--workers 2 --chunk-size 1 " +
          kTokenizer + " < pipe; code=$?; kill $!; exit $code");
  EXPECT_EQ(result.code, 65) << result.all();
  EXPECT_NE(result.all().find("stdin:1:1: malformed JSON"), std::string::npos) << result.all();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(PreprocessApp, RefusesEachKindOfBadLineQuicklyWithoutOutput) {
  std::string deep = "{\"text\":\"x\",\"deep\":";
  for (int i = 0; i < 200'000; ++i) deep += '[';
  const std::vector<std::pair<std::string, const char*>> bad = {
      {"{\"text\":\"x\"", ":2:12: malformed JSON: the line ends"},
      {"{\"other\":\"x\"}", ":2:1: missing key: no \"text\"; the line has \"other\""},
      {"{\"text\":null}", ":2:9: value is not text: \"text\" is null"},
      {"{\"text\":1.5}", ":2:9: value is not text: \"text\" is a number"},
      {"{\"text\":{}}", ":2:9: value is not text: \"text\" is an object"},
      {"{\"text\":\"\xc3\x28\"}", ":2:10: invalid UTF-8: found \"\\xc3\""},
      {"{\"text\":\"\\udc00\"}", ":2:10: lone surrogate: \\udc00"},
      {"{\"text\":\"a\tb\"}", ":2:11: raw control character in a string: found \"\\x09\""},
      {deep, ":2:1019: nested too deeply"},
      {"{\"text\":\"x\"} junk", ":2:14: text after the JSON value: found \"j\""},
      {"\xEF\xBB\xBF{\"text\":\"x\"}", ":2:1: byte order mark"},
  };
  for (const auto& [line, message] : bad) {
    SCOPED_TRACE(message);
    write_file(dir_ / "bad.json", "{\"text\":\"good\"}\n" + line + "\n{\"text\":\"good\"}\n");
    const auto start = std::chrono::steady_clock::now();
    const CommandResult result = preprocess("--input bad.json --output-prefix bad --workers 2");
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
    EXPECT_EQ(result.code, 65);
    EXPECT_NE(result.all().find(message), std::string::npos) << result.all();
    EXPECT_NE(result.all().find("--on-error skip"), std::string::npos);
    EXPECT_EQ(files(), (std::vector<std::string>{"bad.json", "merges.txt", "text", "vocab.json"}));
  }
}

TEST_F(PreprocessApp, NamesWrongUseWithItsExitCode) {
  EXPECT_EQ(preprocess("--input absent --output-prefix out").code, 66);
  EXPECT_EQ(preprocess("--input text --output-prefix out").code, 66);
  EXPECT_EQ(preprocess("--input text/AA/wiki_00 --output-prefix out --rejects r").code, 64);
  EXPECT_EQ(preprocess("--input text/AA/wiki_00 --output-prefix vocab.json/out").code, 74);
  const CommandResult packed =
      run("printf 'BZh91AY' > x.bz2; megalith-preprocess --input x.bz2 --output-prefix out " + kTokenizer);
  EXPECT_EQ(packed.code, 65);
  EXPECT_NE(packed.all().find("x.bz2: the bzip2 data end too early"), std::string::npos) << packed.all();
  EXPECT_EQ(files(), (std::vector<std::string>{"merges.txt", "text", "vocab.json", "x.bz2"}));
}

/// The two sizes in "Memory: 1.50 GiB at most; limit 640.00 MiB (…", in bytes: used and allowed.
std::pair<double, double> memory_of(const std::string& err) {
  double used = 0, limit = 0;
  char used_unit = 0, limit_unit = 0;
  const size_t at = err.find("Memory: ");
  if (at == std::string::npos || std::sscanf(err.c_str() + at, "Memory: %lf %ciB at most; limit %lf %ciB",
                                             &used, &used_unit, &limit, &limit_unit) != 4)
    return {0, 0};
  const auto bytes = [](double n, char unit) {
    return n * (unit == 'G' ? 1 << 30 : unit == 'M' ? 1 << 20 : 1);
  };
  return {bytes(used, used_unit), bytes(limit, limit_unit)};
}

// A text that is a single pretoken is handled by a worker or, if it is longer than 8 MiB, by the writer. The
// limit must hold in both cases.
TEST_F(PreprocessApp, KeepsItsMemoryLimitWhereATextIsOnePretoken) {
  if (kSanitizer) GTEST_SKIP() << "sanitizers take memory of their own";
  const std::string llama = "--tokenizer-type HuggingFaceTokenizer --tokenizer-model " +
                            test_data("text/goldens/hf/llama2.json") + " ";
  for (const size_t mebibytes : {5, 9})
    for (const char letter : {'a', ' '}) {
      write_file(dir_ / "giant.json", "{\"text\":\"" + std::string(mebibytes << 20, letter) + "\"}\n");
      for (const std::string& tokenizer : {kTokenizer, llama}) {
        const CommandResult result =
            run("megalith-preprocess --input giant.json --output-prefix giant --workers 2 " + tokenizer);
        ASSERT_EQ(result.code, 0) << result.all();
        const auto [used, limit] = memory_of(result.all());
        EXPECT_GT(used, 0) << result.all();
        EXPECT_LT(used, limit) << mebibytes << " MiB of " << letter << '\n' << result.all();
      }
    }
}

// Each key's files have buffers of their own, which count towards the limit.
TEST_F(PreprocessApp, KeepsItsMemoryLimitWithManyKeys) {
  if (kSanitizer) GTEST_SKIP() << "sanitizers take memory of their own";
  constexpr int kKeys = 50;
  std::string keys, line;
  for (int k = 0; k < kKeys; ++k) {
    keys += concat(" k", k);
    line += concat(k == 0 ? "{" : ",", "\"k", k, "\":\"", std::string(200, '7'), "\"");
  }
  std::string lines;
  for (int i = 0; i < 400; ++i) lines += line + "}\n";
  write_file(dir_ / "keys.json", lines);
  const CommandResult result = run("megalith-preprocess --input keys.json --output-prefix keys --json-keys" +
                                   keys + " --workers 2 " + kTokenizer);
  ASSERT_EQ(result.code, 0) << result.all();
  const auto [used, limit] = memory_of(result.all());
  EXPECT_NEAR(limit, (128 + 4 * (kKeys - 1)) * 0x1p20 + 2.0 * static_cast<double>(line.size() + 1),
              0x1p20 / 100)  // the precision of the printed figures
      << result.all();
  EXPECT_LT(used, limit) << result.all();
}

// A long text's ids are on the disk, as those of a long line are: it may take no more memory than that line.
TEST_F(PreprocessApp, TakesNoMoreMemoryForATextThanForALine) {
  if (kSanitizer) GTEST_SKIP() << "sanitizers take memory of their own";
  std::string text;
  while (text.size() < size_t{48} << 20) text += "the harbour at night ";
  write_file(dir_ / "one.txt", text);
  write_file(dir_ / "one.jsonl", "{\"text\":\"" + text + "\"}\n");
  const auto used = [&](const std::string& options) {
    const CommandResult result = preprocess("--output-prefix one --workers 2 --input one" + options);
    EXPECT_EQ(result.code, 0) << result.all();
    const auto [most, limit] = memory_of(result.all());
    EXPECT_LT(most, limit) << result.all();
    return most;
  };
  const double line = used(".jsonl");
  const std::string of_line = read_file(dir_ / "one_text_document.bin");
  EXPECT_LT(used(".txt --text file"), line + 8 * 0x1p20);
  EXPECT_TRUE(read_file(dir_ / "one_text_document.bin") == of_line);
}

TEST_F(PreprocessApp, ReadsTextFromStdin) {
  write_file(dir_ / "a.txt", "one\nline\n\ntwo\n");
  write_file(dir_ / "a.jsonl", "{\"text\":\"one\\nline\"}\n{\"text\":\"two\"}\n");
  ASSERT_EQ(preprocess("--append-eod --input a.jsonl --output-prefix json").code, 0);
  const CommandResult piped =
      run("cat a.txt | megalith-preprocess --input - --text paragraph --append-eod "
          "--output-prefix piped " +
          kTokenizer);
  EXPECT_EQ(piped.code, 0) << piped.all();
  for (const char* end : {".bin", ".idx"})
    EXPECT_EQ(read_file(dir_ / concat("piped_text_document", end)),
              read_file(dir_ / concat("json_text_document", end)));
  const CommandResult bad =
      run("printf 'caf\\351\\n' | megalith-preprocess --input - --text file "
          "--output-prefix bad " +
          kTokenizer);
  EXPECT_EQ(bad.code, 65) << bad.all();
  EXPECT_NE(bad.all().find("stdin:1:4: invalid UTF-8"), std::string::npos) << bad.all();
  EXPECT_NE(bad.all().find("`iconv -f latin1 -t utf-8` in a pipe"), std::string::npos) << bad.all();
}

/// Latin-1 as UTF-16 with a byte order mark.
std::string utf16(const std::string& latin1) {
  std::string text = "\xFF\xFE";
  for (const char c : latin1) text += {c, '\0'};
  return text;
}

/// The command between backquotes in a message.
std::string command_in(const std::string& message) {
  const size_t begin = message.find('`') + 1;
  return message.substr(begin, message.find('`', begin) - begin);
}

// The command that a message names is run as it is; what it writes must then be read without a complaint.
TEST_F(PreprocessApp, NamesTheCommandThatMakesAnInputReadable) {
  struct Case {
    const char *tool, *name, *made;
    std::string contents;
    std::string options = {};
  };
  const Case cases[] = {
      {"iconv", "latin.txt", "latin.utf8.txt", "caf\xE9 au lait\n", "--text file "},
      {"iconv", "wide.jsonl", "wide.utf8.jsonl", utf16("{\"text\":\"caf\xE9 au lait\\n\"}\n")},
      {"jq", "pretty.json", "pretty.lines.jsonl", "{\n  \"text\": \"caf\\u00e9 au lait\\n\"\n}\n"},
      {"python3", "it's a table.csv", "it's a table.jsonl", "id,text\n1,\"caf\u00e9 au lait\n\"\n"},
  };
  write_file(dir_ / "wanted.txt", "caf\u00e9 au lait\n");
  ASSERT_EQ(preprocess("--text file --input wanted.txt --output-prefix wanted").code, 0);
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    if (run(concat("command -v ", test.tool)).code != 0) continue;
    write_file(dir_ / test.name, test.contents);
    const CommandResult refused =
        preprocess(concat(test.options, "--output-prefix out --input \"", test.name, "\""));
    EXPECT_EQ(refused.code, 65) << refused.all();
    const CommandResult made = run(command_in(refused.all()));
    EXPECT_EQ(made.code, 0) << command_in(refused.all()) << made.all();
    const CommandResult read =
        preprocess(concat(test.options, "--output-prefix out --input \"", test.made, "\""));
    EXPECT_EQ(read.code, 0) << read.all();
    EXPECT_EQ(read_file(dir_ / "out_text_document.bin"), read_file(dir_ / "wanted_text_document.bin"));
  }
}

}  // namespace
}  // namespace megalith::test
