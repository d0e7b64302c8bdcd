#include <filesystem>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"
#include "tests/support/scripts.h"

// Runs the repository's scripts as a user would, on a machine where something is missing.

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

const std::string kRoot = MEGALITH_SOURCE_DIR;

// The test replaces the programs that the demo builds and runs, and only checks where files are written.
TEST(Demo, WritesWhereItIsTold) {
  const TempDir dir;
  make_directories(dir / "repository/tools/demo");
  fs::copy_file(kRoot + "/demo", dir / "repository/demo");
  fs::copy_file(kRoot + "/tools/build", dir / "repository/tools/build");
  write_script(dir / "repository/tools/setup", "exit 0\n");
  write_script(dir / "repository/.venv/bin/python", "[ -e \"$1\" ] || exit 7; mkdir -p text/AA\n");
  for (const char* name : {"make_text.py", "summary.py"})
    write_file(dir / "repository/tools/demo/" + name, "");
  write_script(dir / "bin/cmake", "exit 0\n");
  for (const char* name : {"tokenizer", "preprocess", "merge", "autoplan", "pretrain", "convert", "generate"})
    write_script(dir / "repository/build/release/bin/megalith-" + name, "exit 0\n");
  const std::string run = "export PATH=" + (dir / "bin") + ":$PATH; cd " + dir.path().string() + " && ";
  for (const std::string& out : {std::string("elsewhere"), dir / "far/away"}) {
    const CommandResult result = run_command(run + "OUT=" + out + " repository/demo");
    EXPECT_EQ(result.code, 0) << result.out << result.err;
    EXPECT_TRUE(file_exists((out[0] == '/' ? out : dir / out) + "/text/.done")) << out;
  }
  EXPECT_EQ(run_command(run + "repository/demo").code, 0);
  EXPECT_TRUE(file_exists(dir / "repository/demo-out/text/.done"));
}

/// What tools/build prints of a build whose ninja prints `lines`, where the build ends with `code`.
CommandResult build_that_prints(const std::string& lines, int code) {
  const TempDir dir;
  make_directories(dir / "repository/tools");
  fs::copy_file(kRoot + "/tools/build", dir / "repository/tools/build");
  write_file(dir / "lines", lines);
  write_script(dir / "bin/cmake",
               concat("[ $1 = --build ] || exit 0\ncat ", dir / "lines", "; exit ", code, "\n"));
  return run_command("export PATH=" + (dir / "bin") + ":$PATH; " + (dir / "repository/tools/build") +
                     " release apps");
}

// Elapsed are 10 s for a quarter, 20 s for a half (no line: half a minute has not passed), 90 s for nine
// tenths.
TEST(Build, SaysHowLongTheRestWillTake) {
  const CommandResult result =
      build_that_prints("@25 100 10.0 Building a.o\n@50 100 20.0 Building b.o\n@90 100 90.0 Linking c\n", 0);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, "building: 25 of 100, 30 s left\nbuilding: 90 of 100, 10 s left\n");
  EXPECT_EQ(build_that_prints("@1 451 1.0 Building a.o\n", 0).out, "building: 1 of 451, 7 min 30 s left\n");
}

TEST(Build, PrintsWhatCompilersSayAndFails) {
  const CommandResult result =
      build_that_prints("@1 2 40 Building a.o\nFAILED: a.o\na.cpp:1: error: none\n", 1);
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, "building: 1 of 2, 40 s left\nFAILED: a.o\na.cpp:1: error: none\n");
  EXPECT_EQ(run_command(kRoot + "/tools/build").code, 64);
}

// Tests of a plugin that was not built skip, which ./test must not take for passed.
TEST(TestScript, RefusesABuildWithoutThePluginsThatSetupProvidesFor) {
  const TempDir dir;
  make_directories(dir / "repository/tools");
  fs::copy_file(kRoot + "/test", dir / "repository/test");
  write_script(dir / "repository/tools/setup", "exit 0\n");
  write_script(dir / "repository/tools/build",
               "mkdir -p build/$1/lib; : > build/$1/lib/libmegalith_gloo.so\n");
  const CommandResult result = run_command("PRESET=dev " + (dir / "repository/test"));
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(
      result.err,
      "test: build/dev has no libmegalith_oniguruma.so; run cmake --fresh --preset dev, which says what "
      "it did not find\n");
}

// The environment of Python is made beside the build.
TEST(TestScript, EndsAfterTheBuildWhereTheEnvironmentCannotBeMade) {
  const TempDir dir;
  make_directories(dir / "repository/tools");
  fs::copy_file(kRoot + "/test", dir / "repository/test");
  write_script(dir / "repository/tools/setup", "[ \"$*\" = --no-python ] || exit 69\n");
  write_script(dir / "repository/tools/build", ": > built\n");
  EXPECT_EQ(run_command(dir / "repository/test").code, 69);
  EXPECT_TRUE(file_exists(dir / "repository/built"));
}

TEST(Setup, NamesThePackagesWhereThereIsNoApt) {
  const TempDir dir;
  make_directories(dir / "bin");
  for (const char* name : {"bash", "dirname", "printf"})
    if (const std::string path = "/usr/bin/" + std::string(name); file_exists(path))
      fs::create_symlink(path, dir / "bin/" + name);
  const CommandResult result =
      run_command("PATH=" + (dir / "bin") + " " + (dir / "bin/bash") + " " + kRoot + "/tools/setup");
  EXPECT_EQ(result.code, 69) << result.out;
  for (const char* word : {"no apt-get", "g++", "libsimdjson-dev", "dnf", "pacman"})
    EXPECT_NE(result.err.find(word), std::string::npos) << word << '\n' << result.err;
}

// The test replaces the package managers. The environment's Python has another version of clang-tidy, and of
// the rest whatever there is.
TEST(Setup, ReplacesAnotherVersionOfWhatIsPinned) {
  const TempDir dir;
  make_directories(dir / "repository/tools");
  fs::copy_file(kRoot + "/tools/setup", dir / "repository/tools/setup");
  write_script(dir / "bin/apt-get", "exit 1\n");
  write_script(dir / "bin/dpkg-query", "echo install ok installed\n");
  for (const std::string package :
       {"numpy", "tokenizers", "safetensors", "tensorboard", "cyclonedx_python_lib", "auditwheel",
        "nvidia_cuda_cuobjdump", "nvidia_cuda_nvdisasm", "clang_tidy"}) {
    const std::string folder = dir / "packages/" + package + "-0.1.dist-info";
    make_directories(folder);
    write_file(folder + "/METADATA", concat("Metadata-Version: 2.1\nName: ", package, "\nVersion: 0.1\n"));
  }
  write_script(dir / "repository/.venv/bin/python", "[ $1 = - ] && PYTHONPATH=" + (dir / "packages") +
                                                        " exec python3 -S \"$@\"\n" + "echo \"$*\" >" +
                                                        (dir / "called") + "\n");
  const CommandResult result =
      run_command("PATH=" + (dir / "bin") + ":$PATH " + (dir / "repository/tools/setup") + " --checks");
  EXPECT_EQ(result.code, 0) << result.all();
  const std::string called = read_file(dir / "called");
  EXPECT_TRUE(called.starts_with("-m pip install -q --no-compile --disable-pip-version-check clang-tidy=="))
      << called;
}

TEST(Setup, LeavesOutTheEnvironmentOfPython) {
  const TempDir dir;
  make_directories(dir / "repository/tools");
  fs::copy_file(kRoot + "/tools/setup", dir / "repository/tools/setup");
  write_script(dir / "bin/apt-get", "exit 1\n");
  write_script(dir / "bin/dpkg-query", "echo install ok installed\n");
  const std::string setup = "PATH=" + (dir / "bin") + ":$PATH " + (dir / "repository/tools/setup");
  for (const char* options : {" --no-python", " --no-python --peers", " --peers --no-python"}) {
    const CommandResult result = run_command(setup + options);
    EXPECT_EQ(result.code, 0) << result.all();
    EXPECT_FALSE(file_exists(dir / "repository/.venv"));
  }
  EXPECT_EQ(run_command(setup + " --no-pyhton").code, 64);
}

TEST(CheckSubjects, WantsWhatChangedInTheImperative) {
  const TempDir dir;
  const auto code_of = [&](const std::string& subject) {
    write_file(dir / "message", subject + "\n\nWhy.\n");
    const CommandResult result = run_command(kRoot + "/tools/check_subjects " + (dir / "message"));
    EXPECT_EQ(result.code == 0, result.err.empty()) << result.err;
    return result.code;
  };
  for (const char* good :
       {"[data] Refuse an .idx whose sizes outrun the file", "[ops/cpu] Feed a thread team its own rows",
        "[train, plan] Bring the loop in three rooms"})
    EXPECT_EQ(code_of(good), 0) << good;
  for (const char* bad :
       {"Refuse an .idx", "[data] refuse an .idx", "[data] Refuse an .idx.", "[data] Format",
        "[data] Refused an .idx", "[data] Refusing an .idx", "[data] WIP on the index",
        "fixup! [data] Refuse an .idx", "Merge branch 'data' into main",
        "[data] Refuse an .idx whose sizes outrun the file and say which of them do so"})
    EXPECT_EQ(code_of(bad), 1) << bad;
}

// The test replaces the programs that the script calls. The tests of this tree notice if the wait for an
// event, the bound or the first barrier is missing, and not the second barrier. The copy has a file of an
// earlier tree.
TEST(Guards, NamesThoseThatNoTestNeeds) {
  const TempDir dir;
  const std::string root = dir / "repository", bin = dir / "bin", kernel = "libcore/ops/cuda/a.cu";
  for (const char* folder : {"tools", "libcore/ops/cuda"}) make_directories(root + "/" + folder);
  fs::copy_file(kRoot + "/tools/guards", root + "/tools/guards");
  const std::string text =
      "  require_success(cudaStreamWaitEvent(s, e, 0), \"wait\");\nvoid kernel() {\n"
      "  __syncwarp();  // unseen by tests: why\n  if (row >= rows) return;\n"
      "  __syncthreads();  // first\n  if (row > 1) return;\n  __syncthreads();  // second\n}\n";
  const std::string copy = root + "/build/guards/source/", gone = copy + "libcore/ops/cuda/gone.cu";
  write_file(root + "/" + kernel, text);
  make_directories(copy + "libcore/ops/cuda");
  write_file(gone, "");
  write_script(bin + "/git", "printf 'libcore/ops/cuda/a.cu\\0'\n");
  write_script(bin + "/cmake", "exit 0\n");
  write_script(copy + "build/release/bin/ops_test",
               "cd " + copy + " && grep -q 'if (row >= rows) return;' " + kernel +
                   " && grep -q '^  __syncthreads();  // first' " + kernel +
                   " && grep -q cudaStreamWaitEvent " + kernel + "\n");
  const auto guards = [&](const std::string& words) {
    return run_command("PATH=" + bin + ":$PATH " + root + "/tools/guards " + words);
  };
  const CommandResult result = guards(kernel);
  EXPECT_EQ(result.code, 1) << result.all();
  EXPECT_EQ(
      result.out,
      "guards: libcore/ops/cuda/a.cu:1: noticed: require_success(cudaStreamWaitEvent(s, e, 0), \"wait\");\n"
      "guards: libcore/ops/cuda/a.cu:4: noticed: if (row >= rows) return;\n"
      "guards: libcore/ops/cuda/a.cu:5: noticed: __syncthreads();\n"
      "guards: libcore/ops/cuda/a.cu:7: NOT NOTICED: __syncthreads();\n"
      "guards: 3 of 4 guards are noticed\n");
  EXPECT_FALSE(file_exists(gone));
  EXPECT_EQ(read_file(root + "/" + kernel), text);
  EXPECT_EQ(read_file(copy + kernel), text);
  write_file(root + "/" + kernel, text.substr(0, text.find("  if (row > 1)")) + "}\n");
  EXPECT_EQ(guards(kernel).code, 0);
}

// A header with another function than the sources call, and one of a wheel, which pip (here a script) has for
// one version.
TEST(NcclHeaders, NamesTheSourceThatDoesNotAgree) {
  const TempDir dir;
  const std::string root = dir / "repository", sources = root + "/libcore/ops/cuda/nccl";
  for (const std::string& folder : {root + "/tools", sources, dir / "cuda/include"}) make_directories(folder);
  fs::copy_file(kRoot + "/tools/nccl_headers", root + "/tools/nccl_headers");
  write_file(dir / "cuda/include/cuda_runtime_api.h", "");
  write_file(sources + "/a.cpp", "#include <nccl.h>\nint a = first();\n");
  write_file(sources + "/b.cpp", "#include <nccl.h>\nint b = second();\n");
  const std::string version =
      "#define NCCL_MAJOR 2\n#define NCCL_MINOR 9\n#define NCCL_PATCH 1\nint first();\n";
  for (const char* name : {"both", "one"}) make_directories(dir / name);
  write_file(dir / "both/nccl.h", version + "int second();\n");
  write_file(dir / "one/nccl.h", version);
  write_script(dir / "bin/python",
               "[ \"$1\" = -m ] || exec python3 \"$@\"\nfor word; do folder=$last; last=$word; done\n"
               "case \"$*\" in *==2.9.1) python3 -c 'import sys, zipfile; "
               "zipfile.ZipFile(sys.argv[1] + \"/w.whl\", \"w\").write(sys.argv[2], "
               "\"nvidia/nccl/include/nccl.h\")' \"$folder\" " +
                   (dir / "both/nccl.h") + ";; *) exit 1;; esac\n");
  const auto check = [&](const std::string& words) {
    return run_command("CUDA_HOME=" + (dir / "cuda") + " MEGALITH_PYTHON=" + (dir / "bin/python") + ' ' +
                       root + "/tools/nccl_headers " + words);
  };
  const std::string agrees = "nccl_headers: nccl.h 2.9.1: all sources agree\n";
  const CommandResult both = check("2.9.1 " + (dir / "both"));
  EXPECT_EQ(both.code, 0) << both.all();
  EXPECT_EQ(both.out, agrees + agrees);
  EXPECT_TRUE(file_exists(root + "/build/nccl_headers/2.9.1/nccl.h"));
  EXPECT_FALSE(file_exists(root + "/build/nccl_headers/2.9.1/w.whl"));
  const CommandResult one = check((dir / "one") + " 2.9.1");
  EXPECT_EQ(one.code, 1) << one.all();
  EXPECT_EQ(one.out, "nccl_headers: nccl.h 2.9.1: libcore/ops/cuda/nccl/b.cpp does not agree\n" + agrees);
  const CommandResult missing = check("2.9.2");
  EXPECT_EQ(missing.code, 69) << missing.all();
  EXPECT_NE(missing.out.find("2.9.2: no folder with a nccl.h, and pip has no wheel"), std::string::npos)
      << missing.all();
}

// A repository whose tidy calls programs of the test, and finds one thing in each source: for good.cpp in a
// header of another library. good.cpp includes part.inc through its header.
class Tidy : public ::testing::Test {
 protected:
  Tidy() {
    for (const char* folder : {"tools", "libcore", "build/tidy"}) make_directories(root_ + "/" + folder);
    fs::copy_file(kRoot + "/tools/tidy", root_ + "/tools/tidy");
    write_file(root_ + "/tools/setup", "pip install clang-tidy==7.1.2\n");
    write_file(root_ + "/.clang-tidy", "Checks: '*'\n");
    write_file(root_ + "/libcore/good.cpp", "#include \"libcore/good.h\"\nint good;\n");
    write_file(root_ + "/libcore/good.h", "#include \"libcore/part.inc\"\n");
    write_file(root_ + "/libcore/part.inc", "extern int good;\n");
    write_file(root_ + "/libcore/bad.cpp", "int bad;\n");
    Json commands = Json::array();
    for (const char* name : {"good", "bad"}) {
      const std::string file = concat(root_, "/libcore/", name, ".cpp");
      commands.push_back(
          Json::Object{{"file", file}, {"command", "ccache " + bin_ + "/clang++ -o x.o -c " + file}});
    }
    write_file(root_ + "/build/tidy/compile_commands.json", commands.dump());
    write_script(bin_ + "/cmake", "exit 0\n");
    // The last of its arguments is the source, or asks for the folder of clang's headers.
    write_script(bin_ + "/clang++",
                 "for last; do :; done\n[ $last = -print-resource-dir ] && echo /llvm || cat \"$last\"\n");
    write_clang_tidy("7.1.2", "a-check,-warnings-as-errors");
  }

  /// clang-tidy of a version, and the check that finds something. It lists the sources that it reads.
  void write_clang_tidy(const std::string& version, const std::string& check) {
    write_script(
        root_ + "/.venv/bin/clang-tidy",
        "[ $1 = --version ] && { echo LLVM version " + version + "; exit 0; }\n" +
            "for source; do :; done; echo $source >>" + read_ + "\n" +
            "case \"$*\" in *--extra-arg=-idirafter/llvm/include*) ;; *) exit 1; esac\n" +
            "[ $source = libcore/good.cpp ] && source=/usr/include/other.h || source=$PWD/$source\n" +
            "echo \"$source:1:5: error: no good [" + check + "]\"\nexit 1\n");
  }

  CommandResult tidy(const std::string& words) {
    return run_command("PATH=" + bin_ + ":$PATH JOBS=1 " + root_ + "/tools/tidy " + words);
  }

  TempDir dir_;
  std::string root_ = dir_ / "repository", bin_ = dir_ / "bin", read_ = dir_ / "read";
};

TEST_F(Tidy, PrintsFindingsAndReadsNothingTwiceThatPassed) {
  const CommandResult all = tidy("--all");
  EXPECT_EQ(all.code, 1) << all.err;
  EXPECT_EQ(all.out, "libcore/bad.cpp:1: no good [a-check]\n");
  EXPECT_EQ(tidy(root_ + "/libcore/good.h").code, 0);
  EXPECT_EQ(read_file(read_), "libcore/bad.cpp\nlibcore/good.cpp\n");
  write_file(root_ + "/libcore/good.cpp", "int better;\n");
  EXPECT_EQ(tidy(root_ + "/libcore/good.cpp").code, 0);
  EXPECT_EQ(read_file(read_), "libcore/bad.cpp\nlibcore/good.cpp\nlibcore/good.cpp\n");
  EXPECT_EQ(tidy("--everything").code, 64);
}

TEST_F(Tidy, ReadsTheSourcesOfAnIncludedPartAndOfChangedRules) {
  EXPECT_EQ(tidy(root_ + "/libcore/part.inc").code, 0);
  EXPECT_EQ(read_file(read_), "libcore/good.cpp\n");
  write_file(root_ + "/.clang-tidy", "Checks: 'a-*'\n");
  EXPECT_EQ(tidy(root_ + "/.clang-tidy").code, 1);
  EXPECT_EQ(read_file(read_), "libcore/good.cpp\nlibcore/bad.cpp\nlibcore/good.cpp\n");
}

TEST_F(Tidy, FindsThatALibrarysHeaderCannotBeRead) {
  write_clang_tidy("7.1.2", "clang-diagnostic-error");
  const CommandResult good = tidy(root_ + "/libcore/good.cpp");
  EXPECT_EQ(good.code, 1) << good.err;
  EXPECT_EQ(good.out, "/usr/include/other.h:1: no good [clang-diagnostic-error]\n");
}

TEST_F(Tidy, TakesTheVersionThatSetupInstallsAndNoOther) {
  write_clang_tidy("7.1.3", "a-check");
  const CommandResult other = tidy("--all");
  EXPECT_EQ(other.code, 69);
  EXPECT_NE(other.err.find("7.1.3, wanted 7.1.2; run tools/setup --checks"), std::string::npos) << other.err;
  fs::remove(root_ + "/.venv/bin/clang-tidy");
  const CommandResult none = tidy("--all");
  EXPECT_EQ(none.code, 69);
  EXPECT_NE(none.err.find("not found, wanted 7.1.2; run tools/setup --checks"), std::string::npos)
      << none.err;
}

}  // namespace
}  // namespace megalith::test
