// Makes the tarball and the Debian package of this build and looks into them.
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/hash/sha256.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/package/package.h"
#include "tests/support/files.h"
#include "tests/support/scripts.h"

namespace megalith::test {
namespace {
namespace fs = std::filesystem;

class ArchivesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_package(); !why.empty()) GTEST_SKIP() << why;
  }
  CommandResult ok(const std::string& command) const {
    const CommandResult result = run_command(concat("cd ", dir_.path().string(), " && ", command));
    EXPECT_EQ(result.code, 0) << command << '\n' << result.all();
    return result;
  }
  /// The folder of the unpacked tarball.
  std::string unpack_tarball() const {
    const std::string archive = package("tarball", dir_ / "dist");
    ok("tar -xzf " + archive);
    const std::string name = fs::path(archive).filename().string();
    return dir_ / name.substr(0, name.size() - std::string_view(".tar.gz").size());
  }
  TempDir dir_;
};

std::set<std::string> names_below(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (!entry.is_directory()) names.insert(fs::relative(entry.path(), folder).string());
  return names;
}

TEST_F(ArchivesTest, OfTheTarballMayLieAnywhere) {
  const std::string unpacked = unpack_tarball();
  fs::create_directories(dir_ / "a b/c");
  fs::rename(unpacked, dir_ / "a b/c/d");
  fs::create_directory_symlink(dir_ / "a b/c/d", dir_ / "short");
  expect_tag(dir_ / "short/");
  expect_programs(dir_ / "short/bin");
}

/// What a list of packages says of a tree: the file of each part of the distribution, and digests.
struct Bill {
  std::set<std::string> parts, files;
  std::map<std::string, std::string> digests;
};

Bill read_bill(const Json& json) {
  Bill bill;
  for (const Json& one : json["components"].as_array()) {
    if (one["type"].as_string() == "file") {
      bill.digests[one["name"].as_string()] = one["hashes"].as_array().at(0)["content"].as_string();
      continue;
    }
    bill.parts.insert(one["name"].as_string());
    if (const Json* const properties = one.find("properties"))
      for (const Json& property : properties->as_array()) bill.files.insert(property["value"].as_string());
  }
  return bill;
}

/// Debian's page of Boost has 2 MB, of which 100 kB concern the one library that is bundled.
void expect_boosts_licence(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with("libboost-program-options")) continue;
    const std::string text = read_file(entry.path().string());
    for (const char* words :
         {"Upstream-Name: Boost", "Files: *\n", "libs/program_options/src/options_description.cpp",
          "Permission is hereby granted, free of charge", "License: BSL-1.0\n Boost Software"})
      EXPECT_NE(text.find(words), std::string::npos) << words;
    EXPECT_EQ(text.find("License: MIT"), std::string::npos);
    EXPECT_LT(text.size(), 200'000U);
    return;
  }
  ADD_FAILURE() << folder << " has no licence of Boost";
}

TEST_F(ArchivesTest, HoldTheLicencesAndAListOfAllThatIsBundled) {
  const fs::path tree = unpack_tarball();
  const Json json = Json::load((tree / "share/megalith/sbom.cdx.json").string());
  const Bill bill = read_bill(json);
  for (const std::string& part : bill.parts)
    EXPECT_TRUE(fs::exists(tree / "share/licenses/megalith" / (part + ".txt"))) << part;
  EXPECT_EQ(read_file((tree / "LICENSE").string()), read_file(MEGALITH_SOURCE_DIR "/LICENSE"));
  int foreign = 0;
  for (const std::string& file : elf_files(tree.string())) {
    const std::string name = fs::relative(file, tree).string();
    EXPECT_EQ(bill.digests.at(name), sha256_hex(read_file(file))) << name;
    const bool stub = read_file(file).find("Megalith does not use it") != std::string::npos;
    if (name.starts_with("bin/") || name.starts_with("lib/libmegalith") || stub) continue;
    ++foreign;
    EXPECT_TRUE(bill.files.contains(name)) << name;
  }
  EXPECT_EQ(static_cast<size_t>(foreign), bill.files.size());
  expect_boosts_licence((tree / "share/licenses/megalith").string());
  const std::string python =
      environment("MEGALITH_PYTHON").empty() ? "python3" : environment("MEGALITH_PYTHON");
  if (run_command(python + " -c 'import cyclonedx.validation.json'").code != 0)
    GTEST_SKIP() << "there is no cyclonedx-python-lib to check the list's form";
  write_file(
      dir_ / "check.py",
      "import sys\nfrom cyclonedx.schema import SchemaVersion\nfrom cyclonedx.validation.json import "
      "JsonStrictValidator\nsys.exit(JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1])."
      "read()) is not None)\n");
  ok(concat(python, " check.py ", (tree / "share/megalith/sbom.cdx.json").string()));
}

TEST_F(ArchivesTest, OfDebianHoldTheTreeAndNoError) {
  if (run_command("command -v cpack").code != 0) GTEST_SKIP() << "there is no cpack";
  const std::string archive = package("deb", dir_ / "dist"), tree = unpack_tarball();
  ok("dpkg-deb -x " + archive + " root");
  EXPECT_EQ(ok("dpkg-deb -f " + archive + " Depends").out,
            "libc6 (>= 2.34), libgcc-s1 (>= 3.4), libstdc++6 (>= 11)\n");
  std::set<std::string> expected;
  for (const std::string& name : names_below(tree))
    if (name.starts_with("bin/") || name.starts_with("lib/") || name.starts_with("share/megalith/") ||
        name.starts_with("share/licenses/") || name == "LICENSE")
      expected.insert(name);
  EXPECT_EQ(names_below(dir_ / "root/usr/lib/megalith"), expected);
  expect_tag(dir_ / "root");
  expect_programs(dir_ / "root/usr/bin");
  if (run_command("command -v lintian").code != 0) GTEST_SKIP() << "there is no lintian";
  const std::string said = run_command("lintian --allow-root " + archive).out;
  EXPECT_EQ(said.find("E: "), std::string::npos) << said;
}

/// Options with which dpkg works in a root of its own.
std::string dpkg_options(const std::string& root) {
  return concat("--root=", root, " --force-depends --force-not-root --log=/dev/null ");
}

// The commands of "install.md" in its order. dpkg's root has none of the libraries that it asks for.
TEST_F(ArchivesTest, InstallAsTheirPageSays) {
  if (run_command("command -v cpack").code != 0) GTEST_SKIP() << "there is no cpack";
  ok("mkdir -p root/var/lib/dpkg/updates root/var/lib/dpkg/info && touch root/var/lib/dpkg/status");
  copy_packages(dir_ / "dist");
  ok("mv dist/* .");
  std::string after_tar;  // what the shell that the page speaks to has done
  int commands = 0;
  for (std::string command : doc_commands("install.md")) {
    if (command.starts_with("tools/package")) {
      EXPECT_EQ(command, "tools/package wheel tarball deb --output dist");
      continue;
    }
    if (!command.starts_with("tar ") && !command.starts_with("export ") && !command.starts_with("dpkg ") &&
        !command.starts_with("sha256sum "))
      continue;
    ++commands;
    if (command.starts_with("dpkg ")) command.insert(5, dpkg_options(dir_ / "root"));
    if (command.starts_with("tar ") || command.starts_with("export "))
      after_tar += (after_tar.empty() ? "" : " && ") + command;
    else
      ok(command);
    if (command.find("--install") != std::string::npos) {
      EXPECT_TRUE(ok("root/usr/bin/megalith --version").out.starts_with("megalith "));
    }
  }
  EXPECT_EQ(commands, 5);
  EXPECT_TRUE(ok(after_tar + " && megalith-data --version").out.starts_with("megalith-data "));
  EXPECT_FALSE(file_exists(dir_ / "root/usr/lib/megalith"));
}

TEST_F(ArchivesTest, AreTheSameEachTime) {
  copy_packages(dir_ / "first");
  ok(concat(MEGALITH_SOURCE_DIR "/tools/package ", usual_forms(),
            " --level 1 --build " MEGALITH_BINARY_DIR " --output second"));
  EXPECT_EQ(read_file(dir_ / "first/SHA256SUMS"), read_file(dir_ / "second/SHA256SUMS"));
}

TEST(Install, BringsWhatTheTargetAppsBuilds) {
  const TempDir dir;
  const CommandResult result =
      run_command("cmake --install " MEGALITH_BINARY_DIR " --prefix " + (dir / "prefix"));
  ASSERT_EQ(result.code, 0) << result.all();
  for (const char* name :
       {"bin/megalith", "bin/megalith-doctor", "lib/libmegalith.so.0", "share/megalith/gpus.yaml",
        "share/man/man1/megalith-doctor.1", "include/libcore/base/error.h"})
    EXPECT_TRUE(file_exists(dir / concat("prefix/", name))) << name;
  EXPECT_EQ(file_exists(dir / "prefix/lib/libmegalith_cuda.so"),
            file_exists(MEGALITH_BINARY_DIR "/lib/libmegalith_cuda.so"));
}

TEST(Package, RefusesWhatIsNotBuilt) {
  const TempDir dir;
  const CommandResult none =
      run_command(MEGALITH_SOURCE_DIR "/tools/package wheel --build " + (dir / "none"));
  EXPECT_EQ(none.code, 66);
  EXPECT_NE(none.err.find("is no build folder"), std::string::npos) << none.err;
  EXPECT_EQ(run_command(MEGALITH_SOURCE_DIR "/tools/package rpm").code, 64);
}

TEST(Package, NamesTheToolsAndRightsThatAFormLacks) {
  const TempDir dir;
  const auto check = [&](const std::string& forms) {
    return run_command(
        concat("python=$(python3 -c 'import sys; print(sys.executable)') && PATH=", dir / "bin",
               " \"$python\" " MEGALITH_SOURCE_DIR "/tools/package ", forms, " --check"));
  };
  EXPECT_EQ(check("wheel tarball").code, 0);
  const CommandResult none = check("deb wheel container");
  EXPECT_EQ(none.code, 69) << none.all();
  EXPECT_NE(none.err.find("cpack, mmdebstrap, umoci: not installed"), std::string::npos) << none.err;
  for (const char* tool : {"mmdebstrap", "umoci"}) write_script(dir / concat("bin/", tool), "");
  const CommandResult container = check("container");
  EXPECT_EQ(container.code, ::getuid() == 0 ? 0 : 69);
  EXPECT_EQ(container.err.find("made by root") != std::string::npos, ::getuid() != 0) << container.err;
}

}  // namespace
}  // namespace megalith::test
