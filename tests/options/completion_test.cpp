#include "libcore/options/completion.h"

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/options/cli.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

struct Ride {
  std::string command, folder = "logs", name, bike, map;
  std::vector<std::string> stops;
  int bikes = 2;
  bool helmet = true;
  std::string speed = "fast";

  template <class V>
  void fields(V&& v) {
    v("command", command, "What to do.", positional(), required(), one_of({"begin", "end"}));
    v("stops", stops, "Where it halts.", positional(), metavar("STOP"));
    v("log_folder", folder, "Where the log goes: [a folder].", metavar("DIR"));
    v("name", name, "Name of the ride's file.");
    v("map", map, "The map of the ride.", metavar("PREFIX"));
    v("bikes", bikes, "Bikes.", at_least(1), alias({"cycles"}));
    v("bike", bike, "Kind of bike.", offers([] { return std::vector<std::string>{"racer", "tandem"}; }));
    v("helmet", helmet, "Wear a helmet.", opposite({"bare-headed"}));
    v("speed", speed, "Speed.", one_of({"slow", "fast"}));
  }
};

template <class Config>
std::string script(const std::string& shell) {
  Config config;
  Options options("ride", "Ride a bike.");
  options.add("Riding", config);
  return options.read({"--help-" + shell + "-completion"}).value();
}

/// An app whose first argument is a command or a file.
struct Walk {
  std::vector<std::string> input;

  template <class V>
  void fields(V&& v) {
    v("input", input, "`inspect PATH`, or a path.", positional(), required(), offers({"inspect", "map"}));
  }
};

/// A folder that holds the script, and files to complete.
class Completion : public testing::TestWithParam<const char*> {
 protected:
  Completion() {
    make_directories(folder_ / "here/subfolder");
    write_file(folder_ / "here/subfile", "");
  }
  /// Runs a shell in the folder, with a program written for the test. Returns the sorted words that it
  /// offers.
  template <class Config = Ride>
  std::string offered(const std::string& shell, const std::string& program) {
    write_file(folder_ / "ride", script<Config>(shell));
    write_file(folder_ / "program", program);
    const auto result = test::run_command("cd " + folder_ / "here" + " && HOME=" + folder_.path().string() +
                                          " " + shell + " ../program | LC_ALL=C sort | tr '\\n' ' '");
    EXPECT_EQ(result.err, "");
    return std::string(trim(result.out));
  }
  template <class Config = Ride>
  std::string bash(const std::string& words) {
    return offered<Config>("bash",
                           "source ../ride; COMP_WORDS=(megalith-ride " + words +
                               "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _megalith_ride\nprintf \"%s\\n\" "
                               "\"${COMPREPLY[@]}\"\n");
  }
  template <class Config = Ride>
  std::string fish(const std::string& line) {
    return offered<Config>(
        "fish", "source ../ride; complete -C 'megalith-ride " + line + "' | string replace -r '\\t.*' ''\n");
  }
  void make_dataset() const {
    for (const char* name : {"here/alps.bin", "here/alps.idx", "here/alpha.txt"})
      write_file(folder_ / name, "");
  }
  static bool has(const char* shell) {
    return test::run_command(std::string("command -v ") + shell).code == 0;
  }
  test::TempDir folder_;
};

TEST_F(Completion, OfBashOffersOptionsAndTheirValues) {
  EXPECT_EQ(bash("begin --b"), "--bare-headed --bike --bikes");
  EXPECT_EQ(bash("--no-h"), "--no-helmet");
  EXPECT_EQ(bash("--log_f"), "--log-folder");
  EXPECT_EQ(bash("--speed \"\""), "fast slow");
  EXPECT_EQ(bash("--speed f"), "fast");
  EXPECT_EQ(bash("--bike \"\""), "racer tandem");
  EXPECT_EQ(bash("--log_folder sub"), "subfolder");
  EXPECT_EQ(bash("--name sub"), "subfile subfolder");
  EXPECT_EQ(bash("--bikes \"\""), "");
}

// A dataset is two files; its option takes what their names begin with.
TEST_F(Completion, OfBashOffersThePrefixOfTwoFiles) {
  make_dataset();
  EXPECT_EQ(bash("--map al"), "alpha.txt alps");
  EXPECT_EQ(bash("--map ./alps"), "./alps");
  EXPECT_EQ(bash("--map sub"), "subfile subfolder");
}

TEST_F(Completion, OfBashOffersTheCommandsOnce) {
  EXPECT_EQ(bash("\"\""), "begin end");
  EXPECT_EQ(bash("e"), "end");
  EXPECT_EQ(bash("begin sub"), "subfile subfolder");
  EXPECT_EQ(bash("--helmet \"\""), "begin end");
}

TEST_F(Completion, OfBashReadsAnEqualsSign) {
  // bash splits "--speed=f" into three words
  EXPECT_EQ(bash("--speed = f"), "fast");
  EXPECT_EQ(bash("--speed ="), "fast slow");
  EXPECT_EQ(bash("--name = subfi"), "subfile");
}

TEST_F(Completion, OffersCommandsBesideFiles) {
  EXPECT_EQ(bash<Walk>("\"\""), "inspect map subfile subfolder");
  EXPECT_EQ(bash<Walk>("ins"), "inspect");
  EXPECT_EQ(bash<Walk>("inspect sub"), "subfile subfolder");
  if (has("fish")) {
    EXPECT_EQ(fish<Walk>("ins"), "inspect");
    EXPECT_EQ(fish<Walk>("sub"), "subfile subfolder/");
  }
}

TEST_F(Completion, OfFishOffersTheSame) {
  if (!has("fish")) GTEST_SKIP() << "fish is not installed";
  EXPECT_EQ(fish(""), "begin end");
  EXPECT_EQ(fish("begin --b"), "--bare-headed --bike --bikes");
  EXPECT_EQ(fish("begin --speed "), "fast slow");
  EXPECT_EQ(fish("begin --bike "), "racer tandem");
  EXPECT_EQ(fish("begin --log-folder sub"), "subfolder/");
  make_dataset();
  EXPECT_EQ(fish("begin --map al"), "alpha.txt alps");
  EXPECT_EQ(fish("begin --map=al"), "--map=alpha.txt --map=alps");
  EXPECT_EQ(fish("begin --map sub"), "subfile subfolder/");
}

TEST_F(Completion, OfZshGivesItsSpecsToArguments) {
  if (!has("zsh")) GTEST_SKIP() << "zsh is not installed";
  const std::string specs =
      offered("zsh", "compdef() { }; _arguments() { print -rl -- \"$@\" }; source ../ride; _megalith-ride\n");
  for (const char* spec :
       {"--speed=[Speed.]:TEXT:(slow fast)", "--bike=[Kind of bike.]:TEXT:(racer tandem)",
        "--helmet[Wear a helmet.]", "--no-helmet[", "--log-folder=[Where the log goes\\: \\[a folder\\].]",
        ":DIR:_files -/", "1:command:(begin end)", "*:file:_files", "--bikes=[Bikes.]:N: "})
    EXPECT_NE(specs.find(std::string(trim(spec))), std::string::npos) << spec << '\n' << specs;
  const std::string both = offered<Walk>(
      "zsh", "compdef() { }; _arguments() { print -rl -- \"$@\" }; source ../ride; _megalith-ride\n");
  EXPECT_NE(both.find("1:command:{compadd -- inspect map; _files}"), std::string::npos) << both;
}

TEST_F(Completion, OfZshOffersThePrefixOfTwoFiles) {
  if (!has("zsh")) GTEST_SKIP() << "zsh is not installed";
  make_dataset();
  const auto prefixes = [this](const std::string& word) {
    return offered("zsh", concat("compdef() { }; _arguments() { }; _files() { print folders }\n"
                                 "compadd() { shift 2; print -rl -- \"$@\" }\n"
                                 "source ../ride; PREFIX=",
                                 word, "; _megalith-ride_prefixes\n"));
  };
  EXPECT_EQ(prefixes("al"), "alps folders");
  EXPECT_EQ(prefixes("./alps"), "./alps folders");
  EXPECT_EQ(prefixes("sub"), "folders");
}

}  // namespace
}  // namespace megalith
