// Runs megalith-doctor here and on eight machines that are broken, each in one way.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/doctor/finding.h"
#include "libcore/json/json.h"
#include "libcore/launch/socket.h"
#include "tests/support/compiler.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {
namespace fs = std::filesystem;
using State = Finding::State;

/// What the doctor says with --json.
struct Said {
  int code = 0;
  double seconds = 0;
  Findings findings;
  std::vector<std::string> does_not_run;

  /// The worst finding of a check.
  Finding of(const std::string& check) const {
    Finding worst;
    for (const Finding& one : findings)
      if (one.check == check && (worst.check.empty() || one.state > worst.state)) worst = one;
    return worst;
  }
};

Said say(const std::string& command) {
  const auto began = std::chrono::steady_clock::now();
  const CommandResult result = run_command(command);
  Said said{.code = result.code, .seconds = seconds_since(began), .findings = {}, .does_not_run = {}};
  if (result.out.empty()) ADD_FAILURE() << command << '\n' << result.all();
  const Json json = Json::parse(result.out, "doctor");
  said.findings = findings_of(json["findings"]);
  for (const Json& one : json["does_not_run"].as_array()) said.does_not_run.push_back(one.as_string());
  return said;
}

class Doctor : public testing::Test {
 protected:
  std::string doctor() const { return concat(app("doctor"), " --json --save ", dir_ / "save"); }
  /// The command after `setup`, which changes mounts for it alone.
  static std::string with_mounts(const std::string& setup, const std::string& command) {
    return concat("unshare -m sh -c 'mount --make-rprivate / && ", setup, " && ", command, "'");
  }
  static bool can_mount() { return run_command("unshare -m mount -t tmpfs none /mnt").code == 0; }
  /// What this installation has, in a folder where a test can break it. The programs' libraries are links.
  void copy_installation() const {
    fs::create_directories(dir_ / "bin");
    fs::create_directories(dir_ / "lib");
    for (const char* name : {"doctor", "pretrain"})
      fs::copy_file(app(name), dir_ / concat("bin/megalith-", name));
    for (const auto& entry : fs::directory_iterator(MEGALITH_BINARY_DIR "/lib"))
      if (entry.path().filename() != "libmegalith_cuda.so") fs::copy(entry.path(), dir_ / "lib");
  }
  std::string copied_doctor() const { return dir_ / "bin/megalith-doctor --json --save " + (dir_ / "save"); }
  TempDir dir_;
};

constexpr char kNoMounts[] = "this user cannot mount";

TEST_F(Doctor, SaysThatASoundMachineRuns) {
  const Said said = say(doctor());
  EXPECT_EQ(said.code, 0);
  EXPECT_LT(said.seconds, 5);
  for (const char* check : {"processor", "memory", "limits", "cache", "shared memory", "plugin onednn", "GPU",
                            "interfaces", "loopback", "port", "disk", "smallest run"})
    EXPECT_EQ(said.of(check).check, check);
  EXPECT_EQ(said.of("smallest run").state, State::kGood) << said.of("smallest run").text;
  for (const Finding& one : said.findings)
    EXPECT_EQ(one.state == State::kGood, one.remedy.empty()) << one.check << ": " << one.text;
  const CommandResult text = run_command(app("doctor"));
  EXPECT_NE(text.out.find("\nwill run: training on the CPU"), std::string::npos) << text.all();
}

TEST_F(Doctor, NamesAFullDisk) {
  if (!can_mount()) GTEST_SKIP() << kNoMounts;
  fs::create_directory(dir_ / "save");
  const Said said = say(with_mounts(concat("mount -t tmpfs -o size=64k none ", dir_ / "save"), doctor()));
  EXPECT_EQ(said.code, 0) << "a run that saves nothing works";
  EXPECT_EQ(said.of("disk").state, State::kBad);
  EXPECT_NE(said.of("disk").text.find("No space left on device"), std::string::npos) << said.of("disk").text;
  EXPECT_EQ(said.of("disk").remedy, "remove files, or choose another --save");
}

TEST_F(Doctor, NamesAHomeThatCannotBeWritten) {
  if (!can_mount()) GTEST_SKIP() << kNoMounts;
  fs::create_directory(dir_ / "home");
  const Said said =
      say(with_mounts(concat("mount -t tmpfs -o ro none ", dir_ / "home"),
                      concat("env -u MEGALITH_CACHE_DIR -u XDG_CACHE_HOME HOME=", dir_ / "home ", doctor())));
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.of("cache").state, State::kWarning);
  EXPECT_EQ(said.of("cache").text, (dir_ / "home") + " cannot be written");
  EXPECT_NE(said.of("cache").remedy.find("MEGALITH_CACHE_DIR"), std::string::npos);
}

TEST_F(Doctor, NamesALimitOfAddresses) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer needs terabytes of addresses";
  const Said said = say("ulimit -v 70000; " + doctor());
  EXPECT_EQ(said.code, 69);
  EXPECT_EQ(said.of("memory").remedy, "ulimit -v unlimited");
  EXPECT_EQ(said.of("smallest run").state, State::kBad);
  EXPECT_EQ(std::count(said.does_not_run.begin(), said.does_not_run.end(), "training on the CPU"), 1);
}

TEST_F(Doctor, RunsWithoutSharedMemory) {
  if (kClang) GTEST_SKIP() << "libomp ends a process without shared memory";
  if (!can_mount()) GTEST_SKIP() << kNoMounts;
  const Said said = say(with_mounts("mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3", doctor()));
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.of("shared memory").text, "/dev/shm is not there; no run needs it");
  EXPECT_EQ(said.of("smallest run").state, State::kGood) << said.of("smallest run").text;
}

TEST_F(Doctor, NamesAPluginThatIsMissing) {
  copy_installation();
  EXPECT_EQ(say(copied_doctor()).code, 0);
  fs::remove(dir_ / "lib/libmegalith_onednn.so");
  fs::remove(dir_ / "lib/libmegalith_yaml.so");
  const Said said = say(copied_doctor());
  EXPECT_EQ(said.code, 69);
  for (const char* check : {"plugin onednn", "plugin yaml"}) {
    EXPECT_EQ(said.of(check).state, State::kBad);
    EXPECT_NE(said.of(check).remedy.find("install Megalith again"), std::string::npos)
        << said.of(check).remedy;
  }
  EXPECT_NE(said.of("smallest run").text.find("exit code 69"), std::string::npos)
      << said.of("smallest run").text;
  EXPECT_EQ(said.of("plugin gloo").state, State::kGood);
}

TEST_F(Doctor, NamesThePackageOfAPluginThatABuildMayLack) {
  copy_installation();
  fs::remove(dir_ / "lib/libmegalith_oniguruma.so");
  const Said said = say(copied_doctor());
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.of("plugin oniguruma").state, State::kWarning);
  EXPECT_EQ(said.of("plugin oniguruma").remedy, "install the package libonig-dev and build Megalith again");
  EXPECT_EQ(std::count(said.does_not_run.begin(), said.does_not_run.end(),
                       "expressions of tokenizers with lookbehind and the like"),
            1);
}

TEST_F(Doctor, NamesAPortThatIsTaken) {
  const Socket listener = listen_on("127.0.0.1", 0);
  const Said said = say(concat(doctor(), " --master-port ", listener.local_port()));
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.of("port").state, State::kWarning);
  EXPECT_NE(said.of("port").remedy.find("--master-port"), std::string::npos);
}

TEST_F(Doctor, NamesAFileSystemThatRunsNoPrograms) {
  if (!can_mount()) GTEST_SKIP() << kNoMounts;
  copy_installation();
  const std::string program = dir_ / "bin/megalith-pretrain";
  const Said said = say(with_mounts(
      concat("mount --bind ", program, ' ', program, " && mount -o remount,bind,noexec ", program),
      copied_doctor()));
  EXPECT_EQ(said.code, 69);
  EXPECT_NE(said.of("smallest run").remedy.find("noexec"), std::string::npos) << said.of("smallest run").text;
}

TEST_F(Doctor, NamesADriverThatIsTooOld) {
  const Variable plugin("MEGALITH_CUDA_LIBS", emulated_cuda_folder());
  const Said sound = say(doctor());
  EXPECT_EQ(sound.of("GPU").state, State::kGood) << sound.of("GPU").text;
  EXPECT_EQ(std::count(sound.does_not_run.begin(), sound.does_not_run.end(), "--device cuda"), 0);
  const Variable fault("MEGALITH_EMULATOR_FAULT", "35:0");
  const Said said = say(doctor());
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.of("GPU").state, State::kWarning);
  EXPECT_NE((said.of("GPU").text + said.of("GPU").remedy).find("install a newer one"), std::string::npos)
      << said.of("GPU").text;
  EXPECT_EQ(std::count(said.does_not_run.begin(), said.does_not_run.end(), "--device cuda"), 1);
}

}  // namespace
}  // namespace megalith::test
