// Installs the packages on machines that have nothing else: roots of Debian 12 and 13, made by mmdebstrap,
// and the container's own.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/package/package.h"
#include "tests/support/files.h"
#include "tests/support/large.h"

namespace megalith::test {
namespace {
namespace fs = std::filesystem;

class Roots : public testing::Test {
 protected:
  void SetUp() override {
    if (!large_tests_wanted()) GTEST_SKIP() << kOnlyAmongLargeTests;
    if (const std::string why = why_no_package(); !why.empty()) GTEST_SKIP() << why;
    if (::getuid() != 0 || run_command("command -v mmdebstrap").code != 0)
      GTEST_SKIP() << "this needs root and mmdebstrap";
  }
  /// Makes the root of a suite of Debian with these packages beside the smallest set.
  void make_root(const std::string& suite, const std::string& packages) const {
    ok(concat("mmdebstrap --quiet --variant=minbase --include=", packages, ' ', suite, ' ', dir_ / "root"));
  }
  static CommandResult ok(const std::string& command) {
    const CommandResult result = run_command(command);
    EXPECT_EQ(result.code, 0) << command << '\n' << result.all();
    return result;
  }
  /// Runs a shell command as root of the folder, with /proc and nothing of the environment.
  static CommandResult run_in(const std::string& root, const std::string& command) {
    return ok(concat(
        "unshare -m --propagation private sh -c 'mount -t proc proc ", root, "/proc && exec chroot ", root,
        " /usr/bin/env -i HOME=/root PATH=/root/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -ec \"$0\"' '",
        command, "'"));
  }
  static void expect_losses(const CommandResult& trained) {
    EXPECT_NE(trained.all().find("lm loss: "), std::string::npos) << trained.all();
  }
  TempDir dir_;
};

/// A root of the suite that is the parameter.
class DebianRoots : public Roots, public testing::WithParamInterface<const char*> {};

TEST_P(DebianRoots, TakeTheWheelWithPythonsEnvironmentsAlone) {
  make_root(GetParam(), "python3-venv");
  fs::copy(package("wheel", dir_ / "dist"), dir_ / "root/root");
  expect_losses(run_in(dir_ / "root",
                       concat("cd /root && python3 -m venv venv && pip install --no-index ./megalith-*.whl "
                              "&& megalith --version && megalith doctor && ",
                              kSmallestTraining)));
}

TEST_P(DebianRoots, TakeTheDebianPackageWithTheLibrariesOfCppAlone) {
  make_root(GetParam(), "libstdc++6");
  fs::copy(package("deb", dir_ / "dist"), dir_ / "root/root");
  expect_losses(run_in(dir_ / "root", concat("dpkg -i /root/megalith_*.deb && megalith doctor && ",
                                             kSmallestTraining, " --nproc 2")));
  run_in(dir_ / "root", "dpkg -P megalith && ! ls /usr/lib/megalith");
}

INSTANTIATE_TEST_SUITE_P(Suites, DebianRoots, testing::Values("bookworm", "trixie"));

TEST_F(Roots, OfTheContainerRunsItsPrograms) {
  if (run_command("command -v umoci").code != 0) GTEST_SKIP() << "there is no umoci";
  const std::string archive = package("container", dir_ / "dist");
  EXPECT_EQ(read_file(archive), read_file(package_anew("container", dir_ / "again"))) << "the same each time";
  ok(concat("cd ", dir_.path().string(), " && mkdir image && tar -C image -xf ", archive,
            " && umoci unpack --image image:$(umoci list --layout image) bundle"));
  expect_losses(run_in(dir_ / "bundle/rootfs", kSmallestTraining));
}

/// Roots in buildah's storage, which needs no engine and no registry.
class Images : public Roots {
 protected:
  void SetUp() override {
    Roots::SetUp();
    if (!IsSkipped() && run_command("command -v buildah").code != 0) GTEST_SKIP() << "there is no buildah";
  }
  CommandResult buildah(const std::string& command) const {
    return ok(concat("buildah --storage-driver vfs --root ", dir_ / "storage", " --runroot ", dir_ / "run ",
                     command));
  }
  void expect_training(const std::string& image) const {
    const std::string container(trim(buildah("from --quiet " + image).out));
    expect_losses(buildah(concat("run --isolation chroot ", container, " -- ", kSmallestTraining)));
  }
};

TEST_F(Images, OfTheContainerRunItsPrograms) {
  expect_training("oci-archive:" + package("container", dir_ / "dist"));
}

// The base comes from a root of the same release in place of a registry's image.
TEST_F(Images, OfTheContainerfileRunItsPrograms) {
  make_root("bookworm", "libstdc++6");
  package("tarball", dir_ / "dist");
  fs::create_directory(dir_ / "base");
  ok(concat("tar -C ", dir_ / "root", " -cf ", dir_ / "base/root.tar", " ."));
  write_file(dir_ / "base/Containerfile", "FROM scratch\nADD root.tar /\n");
  const std::string build = "build --isolation chroot ";
  buildah(concat(build, "--tag localhost/base ", dir_ / "base"));
  buildah(concat(build,
                 "--from localhost/base --tag localhost/megalith --file " MEGALITH_SOURCE_DIR
                 "/tools/packaging/Containerfile ",
                 dir_ / "dist"));
  expect_training("localhost/megalith");
}

}  // namespace
}  // namespace megalith::test
