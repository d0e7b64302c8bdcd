#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

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

/// Writes each paragraph of the repository's pages as a document, notes/N.txt. Returns their number.
int write_notes(const TempDir& dir) {
  fs::create_directories(dir / "notes");
  int notes = 0;
  for (const char* page : {"training.md", "preprocess.md", "generate.md", "convert.md", "design.md"}) {
    std::string paragraph;
    for (const std::string& line : split(read_file(concat(MEGALITH_SOURCE_DIR, "/docs/", page)), '\n')) {
      if (!line.empty()) paragraph += line + '\n';
      if (!line.empty() || paragraph.empty()) continue;
      write_file(dir / concat("notes/", notes++, ".txt"), paragraph);
      paragraph.clear();
    }
  }
  return notes;
}

/// The page's commands as one script. For each option in `options`, its value replaces the page's.
std::string page_script(const std::map<std::string, int>& options) {
  std::string script = "set -euo pipefail\n";
  for (const std::string& line : doc_commands("getting-started.md")) script += line + '\n';
  for (const auto& [option, value] : options) {
    const test::Pattern given(concat("--", option, " [0-9]+"));
    EXPECT_TRUE(given.is_in(script)) << option;
    script = test::replaced(script, given, concat("--", option, " ", value));
  }
  return script;
}

// Runs the commands of docs/getting-started.md in order, with fewer training steps.
TEST(GettingStartedDocs, LeadFromTextToText) {
  const TempDir dir;
  const int notes = write_notes(dir);
  write_file(dir / "corpus.jsonl", "{\"text\": \"The first.\\nIts line.\"}\n{\"text\": \"The second.\"}\n");
  write_file(dir / "script.sh", page_script({{"train-iters", 20},
                                             {"lr-warmup-iters", 2},
                                             {"log-interval", 10},
                                             {"eval-interval", 10},
                                             {"save-interval", 10}}));
  const CommandResult run = run_command(concat("cd ", dir.path().string(), " && PATH=", MEGALITH_BINARY_DIR,
                                               "/bin:$PATH OMP_NUM_THREADS=1 bash -x script.sh"));
  ASSERT_EQ(run.code, 0) << run.all();

  for (const auto& [dataset, documents] :
       {std::pair{"notes_text_document", notes}, {"corpus_text_document", 2}}) {
    const CommandResult shown = run_command(concat(app("data"), " inspect --json ", dir / dataset));
    EXPECT_EQ(Json::parse(shown.out, "inspect")["documents"].as_int(), documents);
  }
  for (const char* checkpoint : {"checkpoint", "evaluated"})
    EXPECT_EQ(trim(read_file(dir / concat(checkpoint, "/latest_checkpointed_iteration.txt"))), "20");
  for (const char* file :
       {"report.html", "evaluated.html", "hf/config.json", "hf/model.safetensors", "hf/tokenizer.json"})
    EXPECT_TRUE(fs::exists(dir / file)) << file;
  EXPECT_NE(run.out.find("The "), std::string::npos) << run.out;

  std::vector<double> losses;
  const test::Pattern logged("lm loss: ([0-9.E+-]+)");
  const std::string all = run.all();
  for (const test::Pattern::Match& at : logged.all_in(all)) losses.push_back(std::stod(at[1]));
  ASSERT_EQ(losses.size(), 4U) << run.all();  // two of the run on texts, two of the run on their dataset
  for (const size_t first : {0, 2}) {
    EXPECT_LT(losses[first], std::log(4096.0) + 0.3);  // near the loss of a uniform guess
    EXPECT_LT(losses[first + 1], losses[first] - 0.3);
  }
}

}  // namespace
}  // namespace megalith::test
