#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/terminal.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

/// A folder whose path needs quoting, with the program `megalith` and two apps.
class Dispatcher : public testing::Test {
 protected:
  Dispatcher() {
    fs::create_directory(bin_);
    fs::copy_file(fs::path(MEGALITH_BINARY_DIR) / "bin" / "megalith", bin_ / "megalith");
    make_app("walk", "Walk the dog.");
    make_app("whistle", "Whistle a tune.");
    write_file((bin_ / "megalith-notes").string(), "no program");
  }
  void make_app(const std::string& name, const std::string& purpose) {
    const fs::path path = bin_ / ("megalith-" + name);
    std::ofstream(path)
        << "#!/bin/sh\n[ \"$1\" = --help-purpose ] && echo '" << purpose << "' && exit\n"
        << "[ \"$1\" = --help-bash-completion ] && echo '_megalith_whistle() { COMPREPLY=(loud); }' && exit\n"
        << "for word; do echo \"" << name << ": <$word>\"; done\nexit 3\n";
    fs::permissions(path, fs::perms::owner_all);
  }
  test::CommandResult run(const std::string& arguments) {
    return test::run_command("\"" + (bin_ / "megalith").string() + "\" " + arguments);
  }

  test::TempDir folder_;
  fs::path bin_ = folder_ / "it's a folder";
};

TEST_F(Dispatcher, ListsTheAppsBesideIt) {
  const std::string list =
      "usage: megalith APP [options]\n\n  walk        Walk the dog.\n  whistle     Whistle a tune.\n\n"
      "megalith APP --help lists the options of an app; megalith-APP is the same\nprogram.\n";
  EXPECT_EQ(run("").out, list);
  EXPECT_EQ(run("--help").out, list);
  EXPECT_EQ(run("help").out, list);
  EXPECT_EQ(run("").code, 0);
}

TEST_F(Dispatcher, FitsTheTerminal) {
  make_app("sing", "Sing a song of sixpence, a pocket full of rye, to four and twenty blackbirds.");
  const auto shown = test::run_on_terminal("\"" + (bin_ / "megalith").string() + "\" --help", 60);
  EXPECT_LE(test::longest_line(shown.out), 60u) << shown.out;
  EXPECT_NE(shown.out.find("blackbirds."), std::string::npos) << shown.out;
}

TEST_F(Dispatcher, RunsAnAppWithItsArgumentsAndExitCode) {
  const auto result = run("walk 'two words' '' --x");
  EXPECT_EQ(result.out, "walk: <two words>\nwalk: <>\nwalk: <--x>\n");
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(run("help walk").out, "walk: <--help>\n");
}

TEST_F(Dispatcher, SaysWhatServesInPlaceOfServe) {
  const auto result = run("serve --model m");
  EXPECT_EQ(result.code, 64);
  EXPECT_EQ(result.err,
            "megalith: error: serve is not supported; megalith generate answers many prompts with one start "
            "(--prompts-file FILE)\nsee --help\n");
}

TEST_F(Dispatcher, NamesTheNearestApp) {
  const auto result = run("wistle");
  EXPECT_EQ(result.err,
            "megalith: error: no app is called \"wistle\"; did you mean \"whistle\"?\nsee --help\n");
  EXPECT_EQ(result.code, 64);
  EXPECT_EQ(run("xyzzy").err, "megalith: error: no app is called \"xyzzy\"\nsee --help\n");
  EXPECT_EQ(run("notes").code, 64);
}

TEST_F(Dispatcher, CompletesAppsAndAsksTheirCompletion) {
  const std::string script = folder_ / "completion";
  write_file(script, run("--help-bash-completion").out);
  EXPECT_EQ(test::run_command("bash -n " + script).code, 0);
  const auto complete = [&](const std::string& words) {
    const std::string use = folder_ / "use";
    write_file(use, "source " + script +
                        "\n_megalith_walk() { COMPREPLY=(\"${COMP_WORDS[*]}:$COMP_CWORD\"); }\n" +
                        "COMP_WORDS=(\"" + (bin_ / "megalith").string() + "\" " + words + ")\n" +
                        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_megalith\necho ${COMPREPLY[@]}\n");
    return test::run_command("bash " + use).out;
  };
  EXPECT_EQ(complete("w"), "walk whistle\n");
  EXPECT_EQ(complete("wh"), "whistle\n");
  EXPECT_EQ(complete("he"), "help\n");
  EXPECT_EQ(complete("help ''"), "walk whistle\n");
  EXPECT_EQ(complete("help wh"), "whistle\n");
  EXPECT_EQ(complete("help walk ''"), "\n");
  EXPECT_EQ(complete("walk --l"), "megalith-walk --l:1\n");
  EXPECT_EQ(complete("whistle --l"), "loud\n");  // the app itself completes the word; no script is loaded
  EXPECT_EQ(complete("xyzzy --l"), "\n");
}

TEST_F(Dispatcher, HasAManPage) {
  const std::string page = run("--help-man").out;
  EXPECT_NE(page.find(".BR megalith\\-walk (1)\n.BR megalith\\-whistle (1)\n"), std::string::npos) << page;
}

TEST_F(Dispatcher, SaysItsVersion) {
  const std::string text = run("--version").out;
  EXPECT_TRUE(text.starts_with("megalith 0.1.0\ncommit: ")) << text;
}

}  // namespace
}  // namespace megalith
