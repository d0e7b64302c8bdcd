// Makes the wheel of this build, looks into it, and installs it as a user does.
#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/io/files/file.h"
#include "tests/package/package.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/files.h"
#include "tests/support/once/pattern.h"

namespace megalith::test {
namespace {
namespace fs = std::filesystem;

/// A folder whose `dist` holds the wheel, and nothing else.
class WheelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_package(); !why.empty()) GTEST_SKIP() << why;
    wheel_ = package("wheel", dir_ / "dist");
  }
  CommandResult ok(const std::string& command) const {
    const CommandResult result = run_command(concat("cd ", dir_.path().string(), " && ", command));
    EXPECT_EQ(result.code, 0) << command << '\n' << result.all();
    return result;
  }
  std::string bin() const { return dir_ / "venv/bin"; }
  TempDir dir_;
  std::string wheel_;
};

/// Beside it, the environment `venv`, in which the wheel is installed.
class InstalledWheelTest : public WheelTest {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_environment(); !why.empty()) GTEST_SKIP() << why;
    WheelTest::SetUp();
    if (!IsSkipped()) copy_environment(dir_ / "venv");
  }
};

/// The most bytes of a wheel. oneDNN alone takes 11.0 MB.
constexpr uintmax_t kMostBytes = 18'000'000;

std::set<std::string> files_below(const std::string& folder) {
  std::set<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().string().find("__pycache__") == std::string::npos) found.insert(entry.path().string());
  return found;
}

TEST_F(WheelTest, IsSmallAndHoldsItsTag) {
  EXPECT_TRUE(wheel_.ends_with("-py3-none-manylinux_2_34_x86_64.whl")) << wheel_;
  EXPECT_LE(fs::file_size(package_anew("wheel", dir_ / "small", 12)), kMostBytes);
  ok("mkdir wheel && cd wheel && python3 -m zipfile -e ../dist/*.whl .");
  expect_tag(dir_ / "wheel");
  // Each file is where pip does not overwrite another package's.
  for (const auto& entry : fs::recursive_directory_iterator(dir_ / "wheel")) {
    if (entry.is_directory()) continue;
    const std::string name = fs::relative(entry.path(), dir_ / "wheel").string();
    static const Pattern kPlaces(
        R"(megalith-[0-9.]+\.(data/data/lib/megalith/.*|data/scripts/megalith[a-z-]*|dist-info/.*)|megalith/__main__\.py)");
    EXPECT_TRUE(kPlaces.matches(name)) << name;
  }
}

TEST_F(WheelTest, HoldsItsTagByAuditwheel) {
  const std::string python = environment("MEGALITH_PYTHON");
  if (python.empty() || run_command(python + " -c 'import auditwheel'").code != 0)
    GTEST_SKIP() << "MEGALITH_PYTHON has no auditwheel (tools/setup)";
  const std::string said = ok(concat(python, " -m auditwheel show ", wheel_)).out;
  EXPECT_TRUE(
      Pattern("consistent with\\s+the following platform tag:\\s+\"manylinux_2_34_x86_64\"").is_in(said))
      << said;
}

/// The only command of a page that begins with `start`.
std::string command_of(const std::string& page, const std::string& start) {
  std::vector<std::string> found;
  for (const std::string& command : doc_commands(page))
    if (command.starts_with(start)) found.push_back(command);
  EXPECT_EQ(found.size(), 1U) << page << ": " << start;
  return found.empty() ? "false" : found[0];
}

TEST_F(WheelTest, InstallsAsItsPageSaysAndLeavesNothing) {
  if (const std::string why = why_no_environment(); !why.empty()) GTEST_SKIP() << why;
  ok("python3 -m venv venv");
  const std::set<std::string> before = files_below(dir_ / "venv");
  const std::string in_dist =
      "export PATH=" + bin() + ":$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 && cd dist && ";
  const auto began = std::chrono::steady_clock::now();
  ok(in_dist + command_of("install.md", "pip install"));
  RecordProperty("install_seconds", std::to_string(seconds_since(began)));
  expect_programs(bin());
  for (const std::string& command : doc_commands("install.md"))
    if (command.starts_with("megalith") || command.starts_with("pip show")) ok(in_dist + command);
  EXPECT_TRUE(ok("venv/bin/python -m megalith --version").out.starts_with("megalith "));
  ok(in_dist + command_of("install.md", "pip uninstall"));
  EXPECT_EQ(files_below(dir_ / "venv"), before);
  ok(in_dist + command_of("README.md", "pip install"));
  EXPECT_TRUE(ok(in_dist + "megalith --version").out.starts_with("megalith "));
}

// pip itself says so for the tags of those machines: Debian 11, Alpine, aarch64 and macOS.
TEST_F(InstalledWheelTest, IsRefusedWhereItDoesNotRun) {
  const std::string page = read_file(page_path("install.md"));
  const std::string install =
      "cd " + dir_.path().string() +
      " && venv/bin/python -m pip install --no-index --only-binary=:all: --target t --platform ";
  for (const char* platform :
       {"manylinux_2_31_x86_64", "musllinux_1_2_x86_64", "manylinux_2_34_aarch64", "macosx_11_0_arm64"}) {
    const CommandResult refused = run_command(install + platform + " ./dist/megalith-*.whl");
    EXPECT_NE(refused.code, 0) << platform;
    EXPECT_NE(refused.err.find("is not a supported wheel on this platform"), std::string::npos)
        << refused.err;
  }
  EXPECT_NE(page.find("`is not a supported wheel on this platform`"), std::string::npos);
  EXPECT_EQ(run_command(install + "manylinux_2_34_x86_64 ./dist/megalith-*.whl").code, 0);
}

TEST_F(InstalledWheelTest, HasLaunchersThatFindTheirProgram) {
  fs::create_symlink(bin() + "/megalith-data", dir_ / "megalith-data");
  EXPECT_TRUE(ok("./megalith-data --version").out.starts_with("megalith-data "));
  EXPECT_TRUE(ok("cd venv/bin && sh megalith-data --version").out.starts_with("megalith-data "));
  EXPECT_EQ(run_command(bin() + "/megalith-data nonsense").code, 64);
}

// NVIDIA's wheels put their libraries there. No folder of the environment is on PATH.
TEST_F(InstalledWheelTest, LooksForNvidiasLibrariesInItsEnvironment) {
  ok("mkdir -p venv/lib/python3.99/site-packages/nvidia/cu13/lib");
  const CommandResult refused =
      run_command(concat("env -i PATH=/usr/bin:/bin ", bin(), '/', kSmallestTraining, " --device cuda"));
  EXPECT_EQ(refused.code, 69) << refused.all();
  EXPECT_NE(refused.err.find("venv/lib/python3.99/site-packages/nvidia/cu13/lib"), std::string::npos)
      << refused.err;
}

// As the wheel nvidia-nccl-cu13 lays it out; the emulated plugin stands for ours and has NCCL's functions.
TEST_F(InstalledWheelTest, FindsTheNcclOfNvidiasWheel) {
  const std::string plugin = emulated_cuda_folder() + "/libmegalith_cuda.so";
  if (!file_exists(plugin)) GTEST_SKIP() << "this build has no emulated device";
  fs::copy_file(plugin, dir_ / "venv/lib/megalith/lib/libmegalith_cuda.so");
  ok("mkdir -p venv/lib/python3.99/site-packages/nvidia/nccl/lib");
  fs::create_symlink(dir_ / "venv/lib/megalith/lib/libmegalith_cuda.so",
                     dir_ / "venv/lib/python3.99/site-packages/nvidia/nccl/lib/libnccl.so.2");
  const CommandResult trained =
      ok(concat("env -i MEGALITH_EMULATOR_DEVICES=2 MEGALITH_NCCL_VERSION=22299 PATH=/usr/bin:/bin ", bin(),
                '/', kSmallestTraining, " --device cuda --nproc 2"));
  EXPECT_NE(trained.all().find(" > NCCL 2.22.99"), std::string::npos) << trained.all();
}

// The plugin comes as a wheel of its own, into the same folder.
TEST_F(InstalledWheelTest, TakesThePluginOfAnotherWheel) {
  if (!file_exists(MEGALITH_BINARY_DIR "/lib/libmegalith_cuda.so"))
    GTEST_SKIP() << "this build has no CUDA plugin";
  const std::string plugin = package_anew("cuda-wheel", dir_ / "plugin");
  EXPECT_EQ(read_file(plugin), read_file(package_anew("cuda-wheel", dir_ / "again")));
  ok("venv/bin/python -m pip install --no-index --no-deps ./plugin/megalith_cuda-*.whl");
  const std::string said = ok("venv/bin/python -m pip show megalith-cuda").out;
  EXPECT_TRUE(Pattern("Requires: megalith, nvidia-cublas(-cu12)?, nvidia-nccl-cu1[23]\n").is_in(said))
      << said;
  EXPECT_NE(ok("venv/bin/megalith --version").out.find("plugins: cuda, "), std::string::npos);
  ok("readelf -d venv/lib/megalith/lib/libmegalith_cuda.so | grep -F '[$ORIGIN]'");
  ok("venv/bin/python -m pip uninstall -y megalith-cuda && venv/bin/megalith --version");
}

// No HOME, a home that cannot be written, and a user without rights.
TEST_F(InstalledWheelTest, RunsWithoutHomeAndRights) {
  fs::copy(test_data("text/goldens/trained"), dir_ / "tokenizer");
  ok("chmod -R a+rX . && mkdir writable && chmod 777 writable");
  const std::string encode = concat("\"cd ", dir_ / "writable", " && echo harbour | ", bin(),
                                    "/megalith-tokenizer encode --tokenizer-model ../tokenizer\"");
  const std::string ids = ok(concat("env -i sh -c ", encode)).out;
  EXPECT_NE(ids, "");
  EXPECT_EQ(ok(concat("env -i HOME=/proc/none sh -c ", encode)).out, ids);
  if (::getuid() != 0) return;
  EXPECT_EQ(
      ok(concat("setpriv --reuid 65534 --regid 65534 --clear-groups env -i HOME=/nonexistent sh -c ", encode))
          .out,
      ids);
}

/// The seconds that the fastest of many starts takes.
double fastest(const std::string& program) {
  double best = 1;
  for (int i = 0; i < 30; ++i) {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(run_command(program + " --version").code, 0);
    best = std::min(best, seconds_since(began));
  }
  return best;
}

TEST_F(InstalledWheelTest, StartsAProgramWithinTenMilliseconds) {
  EXPECT_LT(fastest(bin() + "/megalith-data") - fastest(dir_ / "venv/lib/megalith/bin/megalith-data"), 0.010);
}

TEST_F(WheelTest, RunsOnAProcessorOf2008) {
  if (run_command("command -v qemu-x86_64").code != 0) GTEST_SKIP() << "there is no qemu-x86_64 (qemu-user)";
  ok("mkdir wheel && cd wheel && python3 -m zipfile -e ../dist/*.whl . && chmod -R a+x .");
  const std::string bin = "wheel/*/data/lib/megalith/bin/";
  EXPECT_NE(ok(concat("qemu-x86_64 -cpu Nehalem ", bin, "megalith --version")).out.find("kernels: generic"),
            std::string::npos);
  // With this policy the program does not start itself anew, which would leave the emulator.
  const CommandResult trained = ok(concat(
      "OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive qemu-x86_64 -strace -cpu Nehalem ", bin, kSmallestTraining));
  EXPECT_NE(trained.all().find("lm loss: "), std::string::npos) << trained.all();
  EXPECT_EQ(trained.err.find(" execve("), std::string::npos);
}

}  // namespace
}  // namespace megalith::test
