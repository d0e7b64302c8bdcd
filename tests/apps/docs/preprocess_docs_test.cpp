#include <filesystem>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

// Runs the commands of docs/preprocess.md in a folder with the files that they name.
TEST(PreprocessDocs, EveryCommandWorks) {
  const TempDir dir;
  fs::copy(test_data("text/goldens/trained"), dir / "tokenizer");
  fs::copy(test_data("text/goldens/punkt"), dir / "nltk_data", fs::copy_options::recursive);
  std::string corpus;
  for (int i = 0; i < 40; ++i)
    corpus += concat("{\"text\": \"Document ", i % 30, " of the harbour\", \"meta\": {\"text\": \"no. ", i,
                     "\"}}\n");
  write_file(dir / "corpus.jsonl", corpus);
  write_file(dir / "broken.jsonl", "{\"text\": 1}\n{\"text\": \"whole\"}\n");
  fs::create_directories(dir / "notes");
  write_file(dir / "notes/a.txt", "One.\n\nTwo\nlines.\n");
  write_file(dir / "notes/b.txt", "Three.\n");
  for (const char* part : {"AA", "AB"}) {
    fs::create_directories(dir / concat("datasets/text/", part));
    const CommandResult made =
        run_command(concat(app("preprocess"), " --input ", dir / "corpus.jsonl", " --tokenizer-model ",
                           dir / "tokenizer", " --output-prefix ", dir / "datasets/text/", part, "/wiki"));
    ASSERT_EQ(made.code, 0) << made.err;
  }
  const std::vector<std::string> commands = doc_commands("preprocess.md");
  EXPECT_EQ(commands.size(), 11U);
  for (const std::string& command : commands) {
    const CommandResult run = run_command(
        concat("cd ", dir.path().string(), " && PATH=", MEGALITH_BINARY_DIR, "/bin:$PATH; ", command));
    EXPECT_EQ(run.code, 0) << command << '\n' << run.all();
  }
  const auto documents = [&](const char* name) {
    const CommandResult run = run_command(concat(app("data"), " inspect --json ", dir / name));
    const size_t at = run.out.find("\"documents\": ");
    return at == std::string::npos ? -1 : std::atoi(run.out.c_str() + at + 13);
  };
  EXPECT_EQ(documents("plain_text_document"), 40);
  EXPECT_EQ(documents("split_text_sentence"), 40);
  EXPECT_EQ(documents("long_text_document"), 30);  // the ten duplicates were removed
  EXPECT_EQ(documents("mended_text_document"), 41);
  EXPECT_EQ(documents("nested_meta.text_document"), 40);
  EXPECT_EQ(documents("notes_text_document"), 2);
  EXPECT_EQ(documents("objects_text_document"), 40);
  EXPECT_EQ(documents("paragraphs_text_document"), 3);
  EXPECT_EQ(documents("all"), 80);
  EXPECT_EQ(read_file(dir / "plain_text_document.bin"), read_file(dir / "piped_text_document.bin"));
  EXPECT_EQ(read_file(dir / "rejects.jsonl"), "{\"text\": 1}\n");
}

}  // namespace
}  // namespace megalith::test
