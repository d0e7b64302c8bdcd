// Runs tools/bundle on this build.
#include <filesystem>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "tests/support/compiler.h"
#include "tests/support/files.h"
#include "tests/support/once/pattern.h"
#include "tests/support/scripts.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

const std::string kRepository = MEGALITH_SOURCE_DIR, kBuild = MEGALITH_BINARY_DIR;

TEST(Bundle, NeedsThePlugin) {
  const TempDir dir;
  for (const char* name : {"build/bin/megalith-pretrain", "build/bin/ops_test", "build/bin/gpu_probe"})
    write_script(dir / name, "exit 0\n");
  write_file(dir / "build/CMakeCache.txt",
             "CMAKE_PROJECT_VERSION:STATIC=0.1.0\nCMAKE_CXX_COMPILER:FILEPATH=/usr/bin/c++\n");
  const std::string bundle = kRepository + "/tools/bundle ";
  EXPECT_EQ(run_command(bundle + (dir / "none") + " " + (dir / "a.txz")).code, 66);
  const CommandResult result = run_command(bundle + (dir / "build") + " " + (dir / "a.txz"));
  EXPECT_EQ(result.code, 69) << result.err;
  EXPECT_FALSE(file_exists(dir / "a.txz"));
}

/// The archive of this build, unpacked. Its programs find nothing in the repository.
class BundleTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kAddressSanitizer) GTEST_SKIP() << "a sanitizer's library is not for other machines";
    const CommandResult made =
        run_command(kRepository + "/tools/bundle --without-cuda " + kBuild + " " + (dir_ / "a.tar"));
    ASSERT_EQ(made.code, 0) << made.err;
    said_ = made.err;
    ASSERT_EQ(run_command("tar -C " + dir_.path().string() + " -xf " + (dir_ / "a.tar")).code, 0);
  }
  /// Runs a shell command in the bundle, with nothing in the environment.
  CommandResult run(const std::string& command) const {
    return run_command("cd " + top_ + " && env -i PATH=/usr/bin:/bin OMP_WAIT_POLICY=passive sh -c '" +
                       command + "'");
  }
  TempDir dir_;
  const std::string top_ = dir_ / "megalith";
  std::string said_;
};

// The libraries of glibc, and libgcc_s beside them, are the machine's, and CUDA's come from where they are
// installed.
TEST_F(BundleTest, HoldsEveryLibraryThatItsProgramsNeed) {
  std::istringstream needed(
      run(R"(for file in bin/* lib/*; do LD_LIBRARY_PATH=$PWD/lib ldd $file; done | grep "=>" | sort -u)")
          .out);
  const test::Pattern of_machine("^\\s*(lib(c|m|dl|rt|pthread|resolv|gcc_s)\\.so|ld-linux|libcu)");
  int inside = 0;
  for (std::string line; std::getline(needed, line);) {
    if (of_machine.is_in(line)) continue;
    EXPECT_NE(line.find("=> " + top_ + "/lib/"), std::string::npos) << line;
    ++inside;
  }
  EXPECT_GT(inside, 15);
}

TEST_F(BundleTest, StartsItsProgramsWithoutTheRepository) {
  int programs = 0;
  for (const auto& entry : fs::directory_iterator(top_ + "/bin")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("megalith")) continue;
    ++programs;
    const CommandResult result = run("bin/" + name + " --version");
    EXPECT_EQ(result.code, 0) << name << result.err;
    EXPECT_EQ(result.err, "") << name;
  }
  EXPECT_GE(programs, 10);
  EXPECT_NE(run("bin/ops_test --gtest_list_tests").out.find("AgreesWithTheReference"), std::string::npos);
  const CommandResult trained =
      run("cd docs && ../bin/megalith-pretrain --mock-data --vocab-size 64 --num-layers 1 --hidden-size 16 "
          "--num-attention-heads 2 --seq-length 8 --max-position-embeddings 8 --micro-batch-size 2 "
          "--train-iters 2 "
          "--lr 1e-3 --eval-iters 0 --nproc 2");
  EXPECT_EQ(trained.code, 0) << trained.all();
  const CommandResult refused =
      run("cd docs && ../bin/megalith-pretrain --hidden-size 17 --num-attention-heads 2");
  EXPECT_EQ(refused.code, 64) << "an exception passes through all libraries";
  const CommandResult checked = run("tools/gpu_check --rows rows.jsonl");
  EXPECT_EQ(checked.code, 0) << checked.all();
  EXPECT_NE(checked.out.find("\"none\""), std::string::npos) << checked.out;
}

// Debian 12 has glibc 2.36, and only its libstdc++ asks for as much.
TEST_F(BundleTest, AsksForNoNewerGlibcThanItSays) {
  const std::string most =
      run(R"(for file in bin/* lib/*; do objdump -p $file | grep -o "GLIBC_[0-9.]*"; done | sort -uV | tail -n 1)")
          .out;
  EXPECT_EQ(most, "GLIBC_2.34\n");
  EXPECT_NE(said_.find("for glibc 2.34 and later"), std::string::npos) << said_;
}

}  // namespace
}  // namespace megalith::test
