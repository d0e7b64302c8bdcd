#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/dialects/peers/peer_names.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/once/pattern.h"
#include "tests/support/terminal.h"

namespace megalith {
namespace {

/// The names of all apps, which are the names of the folders in apps/.
std::vector<std::string> app_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(MEGALITH_SOURCE_DIR "/apps"))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  return names;
}

class EveryApp : public testing::TestWithParam<std::string> {
 protected:
  test::CommandResult run(const std::string& arguments) {
    return test::run_command(test::app(GetParam()) + " " + arguments);
  }
};

TEST_P(EveryApp, PrintsItsHelpOnStdout) {
  const auto help = run("--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_EQ(help.out.rfind("usage: megalith-" + GetParam() + " [options]", 0), 0u) << help.out;
}

TEST_P(EveryApp, FitsItsHelpOnATerminalOfEightyColumns) {
  const auto shown = test::run_on_terminal(test::app(GetParam()) + " -h", 80);
  EXPECT_EQ(shown.code, 0);
  EXPECT_LE(test::longest_line(shown.out), 80u) << shown.out;
  EXPECT_EQ(shown.out, test::run_command("COLUMNS=80 " + test::app(GetParam()) + " --help").out);
}

TEST_P(EveryApp, EndsWellWhenTheReaderOfItsHelpHasEnough) {
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(test::run_command("bash -c '" + test::app(GetParam()) +
                                " --help | head -1 >/dev/null; exit ${PIPESTATUS[0]}'")
                  .code,
              0);
}

TEST_P(EveryApp, EndsEveryUsageErrorWithWhereToLook) {
  for (const char* wrong : {"--hlep", "--config", "-x", "surplus --quiet=perhaps"}) {
    const auto result = run(wrong);
    EXPECT_EQ(result.code, 64) << wrong;
    EXPECT_TRUE(result.err.ends_with("\nsee --help\n")) << wrong << ": " << result.err;
  }
}

TEST_P(EveryApp, HasAManPageWithAllSections) {
  static const std::set<std::string> kWithoutFiles = {"doctor", "generate",
                                                      "rank-table"};  // they write to stdout
  const std::string page = run("--help-man").out;
  for (const char* section : {".SH ENVIRONMENT", ".SH FILES", ".SH EXAMPLES", ".SH EXIT STATUS"})
    EXPECT_TRUE(page.find(section) != std::string::npos ||
                (section[4] == 'F' && kWithoutFiles.contains(GetParam())))
        << section;
}

TEST_P(EveryApp, RefusesAnUnknownOption) {
  const auto result = run("--hlep");
  EXPECT_EQ(result.code, 64);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("unknown option \"--hlep\"; did you mean \"--help\"?"), std::string::npos)
      << result.err;
}

TEST_P(EveryApp, HasAValidCompletion) {
  const test::TempDir folder;
  write_file(folder / "completion", run("--help-bash-completion").out);
  const auto result = test::run_command("bash -n " + folder / "completion");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_GT(file_size(folder / "completion"), 200u);
  for (const std::string shell : {"zsh", "fish"}) {
    if (test::run_command("command -v " + shell).code != 0) continue;
    write_file(folder / shell, run("--help-" + shell + "-completion").out);
    const auto read = test::run_command(shell + " -n " + folder / shell);
    EXPECT_EQ(read.code, 0) << shell << ": " << read.err;
  }
}

TEST(Completion, OffersTheKnownTokenizers) {
  // The error message lists the valid names independently of the completion script.
  const std::string error =
      test::run_command(test::app("tokenizer") + " encode --tokenizer-type none </dev/null").err;
  const std::string begin = "; wanted one of ";
  const size_t list = error.find(begin);
  ASSERT_NE(list, std::string::npos) << error;
  std::string names = error.substr(list + begin.size(), error.find('\n', list) - list - begin.size());
  names = test::replaced(names, ", ", " ");
  const std::string script = test::run_command(test::app("tokenizer") + " --help-bash-completion").out;
  EXPECT_NE(script.find("--tokenizer-type) COMPREPLY=($(compgen -W '" + names + "'"), std::string::npos)
      << names << '\n'
      << script;
}

TEST_P(EveryApp, HasAManPageWithoutWarnings) {
  if (test::run_command("command -v groff").code != 0) GTEST_SKIP() << "groff is not installed";
  const auto page = test::run_command(test::app(GetParam()) + " --help-man | groff -man -Tutf8 -Kutf8 -ww");
  EXPECT_EQ(page.code, 0);
  EXPECT_EQ(page.err, "");
}

TEST_P(EveryApp, IsInTheOptionsPage) {
  const std::string page = read_file(MEGALITH_SOURCE_DIR "/docs/options.md");
  EXPECT_NE(page.find(run("--help-markdown").out), std::string::npos) << "run tools/make_options_docs";
}

TEST(DataCache, IsInTheOptionsPage) {
  const std::string page = read_file(MEGALITH_SOURCE_DIR "/docs/options.md");
  const std::string text = test::run_command(test::app("data") + " cache --help-markdown").out;
  EXPECT_NE(text.find("--per-split-data-args-path FILE"), std::string::npos) << text;
  EXPECT_NE(page.find(text), std::string::npos) << "run tools/make_options_docs";
}

// An unknown option that belongs to another program is reported with that program's name, whatever its
// spelling.
TEST(UnknownOption, IsNamedWithTheProgramThatHasIt) {
  const auto error = [](const std::string& arguments) { return test::run_command(arguments).err; };
  const std::string wrong = error(test::app("pretrain") + " --json_keys text");
  EXPECT_NE(wrong.find("unknown option \"--json_keys\"; megalith-preprocess and megalith-tokenizer have it"),
            std::string::npos)
      << wrong;
  EXPECT_NE(error(test::app("merge") + " --micro-batch-size 4").find("have it"), std::string::npos);
  // A misspelled option of the app itself, with one dash, must not be attributed to another program.
  EXPECT_NE(error(test::app("pretrain") + " -lr 3").find("\"-lr\"; did you mean \"--lr\"?"),
            std::string::npos);
  EXPECT_NE(error(test::app("merge") + " -input m").find("did you mean \"--input\"?"), std::string::npos);
  EXPECT_NE(error(test::app("merge") + " --merge-adapter x").find("; megalith-convert has it"),
            std::string::npos);
}

// Each name that a user of another trainer may type is answered with ours, and none of them is an option
// here.
TEST(UnknownOption, OfAnotherTrainerIsAnsweredWithOurs) {
  std::string command = test::app("pretrain");
  for (const PeerName& peer : peer_names()) command += concat(" --", peer.name, " 3");
  const std::string said = test::run_command(command).err;
  for (const PeerName& peer : peer_names())
    EXPECT_NE(said.find(concat("unknown option \"--", peer.name, "\"; here it is ", peer.ours, "\n")),
              std::string::npos)
        << peer.name << '\n'
        << said;
}

// Many names are one edit away from an option of three letters, so most get no hint: --tpp more likely means
// the tensor parallel size than --top.
TEST(UnknownOption, IsNoNeighbourOfAShortOne) {
  const auto error = [](const std::string& option) {
    return test::run_command(test::app("autoplan") + " " + option + " 3").err;
  };
  for (const char* option : {"--tpp", "--topk", "--topp", "--hff"})
    EXPECT_NE(error(option).find(concat("unknown option \"", option, "\"\n")), std::string::npos)
        << error(option);
  EXPECT_NE(error("--tpo").find("did you mean \"--top\"?"), std::string::npos) << error("--tpo");
  EXPECT_NE(error("--tops").find("did you mean \"--top\"?"), std::string::npos) << error("--tops");
}

// The manual page lists the environment variables that training reads and the exit codes after a signal.
TEST(ManPage, SaysWhatTrainingReadsAndHowItEnds) {
  const auto page = [](const std::string& app) {
    return test::replaced(test::run_command(test::app(app) + " --help-man").out, "\\\\(-|:)", "$1");
  };
  const std::string pretrain = page("pretrain");
  for (const char* name :
       {"\nDEVICE_MEMORY_GB", "CUDA_VISIBLE_DEVICES", "whose state is saved first where --save",
        "Width of --help, and of megalith-data's tables,"})
    EXPECT_NE(test::replaced(pretrain, "\\.B ", "").find(name), std::string::npos) << name;
  EXPECT_NE(page("finetune").find("CUDA_VISIBLE_DEVICES"), std::string::npos);
}

// Each other program is started once, not once for each unknown name: 400 names once took 12 seconds.
TEST(UnknownOption, AsksEachOtherProgramOnce) {
  namespace fs = std::filesystem;
  const test::TempDir dir;
  fs::create_directory(dir / "bin");
  fs::create_directory_symlink(fs::path(test::app("merge")).parent_path().parent_path() / "lib", dir / "lib");
  fs::copy_file(test::app("merge"), dir / "bin/megalith-merge");
  write_file(dir / "bin/megalith-other",
             "#!/bin/sh\necho asked >> " + (dir / "count") + "\necho ' --thing-7 '\n");
  fs::permissions(dir / "bin/megalith-other", fs::perms::owner_all);
  std::string config;
  for (int i = 0; i < 400; ++i) config += concat("thing-", i, ": 1\n");
  write_file(dir / "run.yaml", config);
  const test::CommandResult refused =
      test::run_command(dir / "bin/megalith-merge --config " + (dir / "run.yaml"));
  EXPECT_EQ(refused.code, 64) << refused.err;
  EXPECT_NE(refused.err.find(":8: unknown option \"thing-7\"; megalith-other has it"), std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("unknown option \"thing-399\""), std::string::npos) << refused.err;
  EXPECT_EQ(read_file(dir / "count"), "asked\n");
}

INSTANTIATE_TEST_SUITE_P(Apps, EveryApp, testing::ValuesIn(app_names()),
                         [](const auto& app) { return test::replaced(app.param, "-", "_"); });

// megalith-eval works in one process, though a launcher could be meant to make it parallel.
TEST(AppOfOneProcess, RefusesALauncherOfSeveral) {
  const auto run = [](const std::string& environment) {  // neither of the two files is there
    return test::run_command(
        concat("cd /dev && ", environment, ' ', test::app("eval"), " --model none --tasks none"));
  };
  const std::string refusal = "=2 in the environment: megalith-";
  for (const char* several :
       {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=1",
        "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2", "SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=2"}) {
    const auto refused = run(several);
    EXPECT_EQ(refused.code, 64) << several << ": " << refused.all();
    EXPECT_NE(refused.err.find(refusal), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("start it once"), std::string::npos) << refused.err;
  }
  // The next thing that is wrong is a file.
  for (const char* alone :
       {"", "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=1", "SLURM_NTASKS=2"}) {
    const auto passed = run(alone);
    EXPECT_NE(passed.code, 0) << alone << ": " << passed.all();
    EXPECT_EQ(passed.err.find(refusal), std::string::npos) << passed.err;
    EXPECT_TRUE(test::Pattern("error: .*(none|null)").is_in(passed.err)) << passed.all();
  }
}

}  // namespace
}  // namespace megalith
