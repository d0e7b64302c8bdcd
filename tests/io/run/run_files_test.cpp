#include "libcore/io/run/run_files.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

std::string complaint(const RunFiles& files) {
  try {
    files.check();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return {};
}

class RunFilesTest : public testing::Test {
 protected:
  RunFilesTest() {
    write_file(dir_ / "input", "text");
    fs::create_directory(dir_.path() / "folder");
    write_file(dir_ / "folder/in", "text");
    fs::create_symlink("input", dir_ / "link");
    fs::create_hard_link(dir_ / "input", dir_ / "other");
    fs::create_directory_symlink("folder", dir_ / "way");
    fs::create_symlink("later", dir_ / "to-later");  // a link whose target does not exist yet
    fs::create_symlink("../to-later", dir_ / "folder/to-later");
    fs::create_symlink("another", dir_ / "to-another");
    fs::create_symlink("circle", dir_ / "circle");
  }
  std::string of_output(const std::string& output) const {
    RunFiles files;
    files.reads("--input", dir_ / "input");
    files.reads("--model", dir_ / "folder");
    files.writes("--output", output);
    return complaint(files);
  }
  test::TempDir dir_;
};

TEST_F(RunFilesTest, RefusesAnInputByAnyNameOfIt) {
  for (const char* const name :
       {"input", "./input", "folder/../input", "link", "other", "folder/in", "way/in"})
    EXPECT_NE(of_output(dir_ / name).find("is also an input, of --"), std::string::npos) << name;
  for (const char* const name : {"new", "folder/new", "way/new", "no/such/folder"})
    EXPECT_EQ(of_output(dir_ / name), "") << name;
}

TEST_F(RunFilesTest, RefusesOneNameForTwoOutputs) {
  for (const auto& [one, two, same] : {std::tuple{"new", "./new", true},
                                       {"folder/new", "way/new", true},
                                       {"input", "link", true},
                                       {"later", "to-later", true},
                                       {"to-later", "folder/to-later", true},
                                       {"later", "to-another", false},
                                       {"new", "newer", false}}) {
    RunFiles files;
    files.writes("--a", dir_ / one);
    files.writes("--b", dir_ / two);
    EXPECT_EQ(!complaint(files).empty(), same) << one << " " << two << ": " << complaint(files);
  }
}

TEST_F(RunFilesTest, KnowsTheRealPath) {
  const std::string here = fs::canonical(dir_.path()).string();
  for (const auto& [path, real] : {std::pair{"folder/to-later", "/later"},
                                   {"link", "/input"},
                                   {"way/new", "/folder/new"},
                                   {"way/", "/folder"},
                                   {"no/such/", "/no/such"},
                                   {"circle", "/circle"}})
    EXPECT_EQ(real_path(dir_ / path), here + real) << path;
}

TEST_F(RunFilesTest, RefusesAFolderThatHoldsAnInput) {
  for (const auto& [output, bad] :
       {std::pair{"folder", true}, {"way/", true}, {".", true}, {"fold", false}}) {
    RunFiles files;
    files.reads("--input", dir_ / "folder/in");
    files.replaces_folder("--output", dir_ / output);
    EXPECT_EQ(!complaint(files).empty(), bad) << output << ": " << complaint(files);
  }
}

// Many inputs of one folder are resolved with it; links to an input, or to its folder, lead elsewhere.
TEST_F(RunFilesTest, RefusesAFolderThatHoldsAnInputByAnyNameOfIt) {
  fs::create_symlink("folder/in", dir_ / "to-in");
  write_file(dir_ / "folder/second", "text");
  for (const char* const name : {"folder/in", "way/in", "to-in", "folder/./in", "way/../folder/in"}) {
    RunFiles files;
    for (const std::string& input : {std::string("input"), std::string(name), std::string("folder2/none")})
      files.reads("--input", dir_ / input);
    files.replaces_folder("--output", dir_ / "folder");
    EXPECT_NE(complaint(files).find("would be replaced, and holds the input of --input"), std::string::npos)
        << name;
  }
  RunFiles files;
  files.reads("--input", {dir_ / "folder/in", dir_ / "folder/second", dir_ / "input"});
  files.writes("--output", dir_ / "way/second");
  EXPECT_NE(complaint(files).find("is also an input"), std::string::npos);
}

// A folder appears by one rename, which the system refuses where a link has the name.
TEST_F(RunFilesTest, RefusesALinkWhereAFolderAppears) {
  for (const auto& [name, target] : {std::pair{"to-folder", "empty"},
                                     {"to-file", "folder/in"},
                                     {"to-nothing", "none"},
                                     {"in-circles", "in-circles"}}) {
    fs::create_directory(dir_ / "empty");
    fs::create_symlink(target, dir_ / name);
    for (const char* end : {"", "/"}) {
      RunFiles files;
      files.replaces_folder("--output", dir_ / name + end);
      EXPECT_NE(complaint(files).find("is a link, whose name no new folder can take"), std::string::npos)
          << name;
    }
    RunFiles within;
    within.replaces_folder("--output", dir_ / name + "/new");
    EXPECT_EQ(complaint(within), "") << name;
  }
}

TEST_F(RunFilesTest, KeepsSomeNamesOfAFolderWhatLiesInThemToo) {
  fs::create_directories(dir_ / "kept/iter_2/deep");
  fs::create_directory_symlink("kept/iter_2", dir_ / "short");
  constexpr std::string_view kNames[] = {"tracker", "iter_*", "*.pth"};
  for (const auto& [output, bad] : {std::pair{"kept", true},
                                    {"kept/", true},
                                    {"kept/tracker", true},
                                    {"kept/iter_2/index", true},
                                    {"kept/iter_2/deep/new", true},
                                    {"short/deep/new", true},
                                    {"kept/iter_7/new", true},
                                    {"kept/model.pth", true},
                                    {"later", true},
                                    {"later/of/iter_7/new", true},
                                    {"later/of/log", false},
                                    {"kept/log", false},
                                    {"kept/logs/iter_2", false},
                                    {"kept/trackers", false},
                                    {"kept/model.pth.html", false},
                                    {"kept.iter_2", false}})
    for (const bool whole : {false, true}) {
      RunFiles files;
      files.keeps("--save", dir_ / "kept", kNames);
      files.keeps("--later", (dir_ / "later/of") + "/", kNames);
      whole ? files.replaces_folder("--output", dir_ / output) : files.writes("--output", dir_ / output);
      const std::string said = complaint(files);
      EXPECT_EQ(!said.empty(), bad) << output << ": " << said;
      EXPECT_TRUE(!bad || said.find(quote(dir_ / output)) != std::string::npos) << said;
    }
}

TEST_F(RunFilesTest, TellsFilesFromWhatIsNone) {
  ASSERT_EQ(::mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = dir_ / "socket";
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::copy(path.begin(), path.end(), address.sun_path);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(socket);
  struct Case {
    std::string path;
    OutputKind kind;
    std::string what;
  };
  for (const auto& [output, kind, what] : {Case{"/dev/null", OutputKind::kFile, "is a device"},
                                           {"/dev/null", OutputKind::kStream, ""},
                                           {dir_ / "fifo", OutputKind::kFile, "is a FIFO"},
                                           {dir_ / "fifo", OutputKind::kStream, ""},
                                           {path, OutputKind::kFile, "is a socket"},
                                           {path, OutputKind::kStream, "is a socket"},
                                           {dir_ / "folder", OutputKind::kFile, "is a folder"},
                                           {dir_ / "folder", OutputKind::kStream, "is a folder"}}) {
    RunFiles files;
    files.writes("--output", output, kind);
    files.writes("--again", "/dev/null", OutputKind::kStream);  // any number of outputs may go to a device
    const std::string said = complaint(files);
    EXPECT_EQ(said.empty(), what.empty()) << said;
    EXPECT_NE(said.find(what), std::string::npos) << said;
  }
}

TEST_F(RunFilesTest, RefusesEveryOutputInACheckpoint) {
  fs::create_directories(dir_ / "run/iter_0000004/deep");
  fs::create_directories(dir_ / "run/iter_2/deep");
  fs::create_directory_symlink("run/iter_0000004", dir_ / "short");
  for (const auto& [output, bad] : {std::pair{"run/iter_0000004", true},
                                    {"run/iter_0000004/new", true},
                                    {"run/iter_0000004/deep/", true},
                                    {"run/iter_0000004/no/such/folder", true},
                                    {"short/new", true},
                                    {"run/iter_0000005/new", false},  // there is no such checkpoint
                                    {"run/iter_2/new", false},
                                    {"run/iter_0000004.txt", false},
                                    {"run/log", false},
                                    {"run", false}})
    for (const auto add : {&RunFiles::fills_folder, &RunFiles::replaces_folder}) {
      RunFiles files;
      (files.*add)("--output", dir_ / output);
      EXPECT_EQ(complaint(files).find("lies in the checkpoint") != std::string::npos, bad) << output;
      EXPECT_EQ(!complaint(files).empty(), bad) << output;
    }
  RunFiles file;
  file.writes("--output", dir_ / "run/iter_0000004/deep/log");
  EXPECT_NE(complaint(file).find("lies in the checkpoint"), std::string::npos);
}

TEST_F(RunFilesTest, LetsAFolderBeFilledThatHoldsNothingProtected) {
  fs::create_directories(dir_ / "model/tokenizer");
  constexpr std::string_view kNames[] = {"tokenizer", "iter_*"};
  for (const auto& [output, bad] : {std::pair{"model", false},
                                    {"model/", false},
                                    {".", false},
                                    {"model/tuned", false},
                                    {"model/tokenizer", true},
                                    {"model/tokenizer/new", true},
                                    {"model/iter_2", true}}) {
    RunFiles files;
    files.reads("--model", dir_ / "model");
    files.keeps("--model", dir_ / "model", kNames);
    files.fills_folder("--save", dir_ / output);
    EXPECT_EQ(!complaint(files).empty(), bad) << output << ": " << complaint(files);
  }
}

TEST_F(RunFilesTest, SaysWhichFilesOutputsAre) {
  RunFiles files;
  files.reads("--input", dir_ / "folder/in");
  EXPECT_TRUE(files.written_files().empty());
  files.writes("--output", dir_ / "link");
  files.writes("--log", dir_ / "absent");
  struct stat info {};
  ASSERT_EQ(::stat((dir_ / "input").c_str(), &info), 0);
  EXPECT_EQ(files.written_files(), (std::set<std::pair<dev_t, ino_t>>{{info.st_dev, info.st_ino}}));
}

}  // namespace
}  // namespace megalith
