// Runs the commands of published tutorials (PAI's for Megatron-LM on DLC, CodeParrot's) as users type them
// (tests/apps/fixtures/commands); only the executables are replaced.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"
#include "tests/support/once/pattern.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// A folder with the tutorials' inputs, in which their commands run. GPT-2's vocabulary has its full size,
/// filled up with tokens that occur nowhere.
class TutorialCommands : public testing::Test {
 protected:
  TutorialCommands() {
    fs::copy(test_data("apps/fixtures/wiki/text"), dir_ / "text", fs::copy_options::recursive);
    Json vocabulary = Json::load(test_data("apps/fixtures/wiki/vocab.json"));
    for (int64_t id = 420; id < 50257; ++id)
      vocabulary.as_object().emplace_back(concat("\u0100\u0100", id), id);
    for (const char* name : {"gpt2-vocab.json", "vocab.json"}) write_file(dir_ / name, vocabulary.dump());
    for (const char* name : {"gpt2-merges.txt", "merges.txt"})
      fs::copy_file(test_data("apps/fixtures/wiki/merges.txt"), dir_ / name);
  }
  static std::string commands(const std::string& name) {
    const std::string text = read_file(test_data(concat("apps/fixtures/commands/", name, ".sh")));
    const std::string swapped =
        test::replaced(text, "python [^ ]*tools/preprocess_data\\.py", "megalith-preprocess");
    return test::replaced(swapped, "python [^ ]*tools/merge_datasets\\.py", "megalith-merge");
  }
  CommandResult run(const std::string& script) {
    write_file(dir_ / "script.sh", script);
    return run_command(concat("cd ", dir_.path().string(), " && PATH=",
                              fs::path(app("preprocess")).parent_path().string(), ":$PATH bash script.sh"));
  }
  std::string file(const std::string& name) const { return read_file(dir_ / name); }
  TempDir dir_;
};

const char* const kArticles[] = {"AA/wiki_00", "AA/wiki_01", "AB/wiki_02"};

// The tutorial copies datasets into a folder that does not exist, so its merge finds none. The error must say
// what to do.
TEST_F(TutorialCommands, OfEnwikiMakeTheDatasetsAndTheMergeNamesTheRemedy) {
  const CommandResult result = run(commands("enwiki"));
  for (const char* article : kArticles)
    for (const char* end : {"_text_document.bin", "_text_document.idx"})
      EXPECT_EQ(file(concat("datasets/text/", article, end)),
                read_file(test_data(concat("apps/fixtures/wiki/goldens/text/", article, end))));
  EXPECT_EQ(result.code, 66) << result.err;
  EXPECT_NE(
      result.err.find("flatten_datasets/: holds no .bin/.idx pair; for datasets in folders below it give "
                      "--recursive"),
      std::string::npos)
      << result.err;
  EXPECT_FALSE(file_exists(dir_ / "enwiki-latest-pages-articles.idx"));
}

// The script succeeds once it copies into a folder that exists and merges with --recursive, as the error
// recommends.
TEST_F(TutorialCommands, OfEnwikiMergeWhatWasCopiedAsTheRemedyDoes) {
  std::string script(trim(commands("enwiki")));
  const std::string copies = "../../flatten_datasets/\\1_wiki\\2";
  ASSERT_NE(script.find(copies), std::string::npos);
  script.replace(script.find(copies), copies.size(), "flatten_datasets/\\1_wiki\\2");
  const CommandResult result = run("mkdir -p flatten_datasets/datasets/text\n" + script +
                                   " --recursive\n"
                                   "megalith-merge --output-prefix remedy --input datasets/text --recursive\n"
                                   "mv flatten_datasets/datasets/text flat\n"
                                   "megalith-merge --output-prefix ./flat-articles --input flat/\n");
  EXPECT_EQ(result.code, 0) << result.err;
  std::string joined;
  for (const char* article : kArticles)
    joined += read_file(test_data(concat("apps/fixtures/wiki/goldens/text/", article, "_text_document.bin")));
  for (const char* prefix : {"enwiki-latest-pages-articles", "remedy", "flat-articles"}) {
    EXPECT_EQ(file(concat(prefix, ".bin")), joined) << prefix;
    EXPECT_EQ(run(concat("megalith-data verify ", prefix)).code, 0) << prefix;
  }
  EXPECT_EQ(file("remedy.idx"), file("enwiki-latest-pages-articles.idx"));
  EXPECT_EQ(file("flat-articles.idx"), file("enwiki-latest-pages-articles.idx"));
}

TEST_F(TutorialCommands, OfALooseJsonCorpusPrintMegatronsLines) {
  write_file(
      dir_ / "my-corpus.json",
      "{\"src\": \"www.nvidia.com\", \"text\": \"The quick brown fox\", \"type\": \"Eng\", \"id\": \"0\", "
      "\"title\": \"First Part\"}\n"
      "{\"src\": \"The Internet\", \"text\": \"jumps over the lazy dog\", \"type\": \"Eng\", \"id\": "
      "\"42\", \"title\": \"Second Part\"}\n");
  const CommandResult result = run(commands("my-corpus"));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");  // the log goes to stdout, like upstream's log
  size_t at = 0;
  for (const char* line :
       {"Opening my-corpus.json\n", "> building GPT2BPETokenizer tokenizer ...\n",
        " > padded vocab (size: 50257) with 47 dummy tokens (new size: 50304)\n", "Vocab size: 50257\n",
        "Output prefix: my-gpt2\n", "Time to startup: ", "Done! Now finalizing.\n"}) {
    const size_t found = result.out.find(line, at);
    ASSERT_NE(found, std::string::npos) << line << "is not in its place in\n" << result.out;
    at = found;
  }
  const CommandResult shown =
      run("megalith-data cat my-gpt2_text_document --tokenizer-type GPT2BPETokenizer --vocab-file "
          "gpt2-vocab.json --merge-file gpt2-merges.txt");
  EXPECT_EQ(shown.code, 0) << shown.err;
  for (const char* text : {"The quick brown fox<|endoftext|>", "jumps over the lazy dog<|endoftext|>"})
    EXPECT_NE(shown.out.find(text), std::string::npos) << shown.out;
}

// Writes the file as to_json(lines=True) of the `datasets` library does. That uses pandas, which escapes
// slashes.
TEST_F(TutorialCommands, OfCodeParrotTakeEachDatasetImpl) {
  write_file(dir_ / "codeparrot_data.json",
             "{\"repo_name\":\"a\\/b\",\"content\":\"x = 1\\/2\\n# \\u00e9\\n\"}\n{\"content\":\"\"}\n");
  std::string expected[2];
  for (const std::string layout : {"mmap", "lazy", "cached"}) {
    const CommandResult result =
        run(test::replaced(commands("codeparrot"), "--dataset-impl mmap", "--dataset-impl " + layout));
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.all().find("the mmap layout is written") != std::string::npos, layout != "mmap")
        << result.all();
    const std::string bin = file("codeparrot_content_document.bin"),
                      idx = file("codeparrot_content_document.idx");
    if (layout == "mmap") expected[0] = bin, expected[1] = idx;
    EXPECT_EQ(bin, expected[0]);
    EXPECT_EQ(idx, expected[1]);
  }
  const CommandResult shown =
      run("megalith-data cat codeparrot_content_document --tokenizer-type GPT2BPETokenizer --vocab-file "
          "vocab.json --merge-file merges.txt");
  EXPECT_NE(shown.out.find("x = 1/2\\n# \u00e9\\n<|endoftext|>"), std::string::npos)
      << shown.out << shown.err;
}

}  // namespace
}  // namespace megalith::test
