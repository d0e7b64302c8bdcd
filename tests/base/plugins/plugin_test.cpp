#include "libcore/base/plugins/plugin.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

constexpr const char* kDecoder = "libmegalith_decoder.so";

std::string lib(std::string_view file) {
  return concat(MEGALITH_BINARY_DIR, "/lib/", file);
}

/// The message of the Error that `action` throws; empty if it throws none.
std::string complaint(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice) << error.what();
    return error.what();
  }
  return "";
}

std::string complaint_of_opening(const std::string& file, const std::string& folder) {
  return complaint([&] {
    Plugin(file, {.folders = {folder}, .if_missing = "look elsewhere", .if_library_missing = "install it"});
  });
}

TEST(Plugin, LiesBesideTheLibrary) {
  const std::vector<std::string> folders = own_library_folders();
  ASSERT_FALSE(folders.empty());
  EXPECT_EQ(folders[0], concat(MEGALITH_BINARY_DIR, "/lib"));
  EXPECT_EQ(folders.size(), 1u) << "lib/ beside the program's folder is the same";
}

TEST(Plugin, HasTheFunctionsThatItExportsAndNoOther) {
  const Plugin plugin(kDecoder);
  EXPECT_NE(plugin.function<void()>("megalith_decoder"), nullptr);
  EXPECT_EQ(complaint([&] { plugin.function<void()>("megalith_encoder"); }),
            "libmegalith_decoder.so: no function megalith_encoder; it belongs to another build of Megalith: "
            "build and install both together");
}

TEST(Plugin, SaysWhereItWasLookedFor) {
  const TempDir folder;
  EXPECT_EQ(complaint_of_opening(kDecoder, folder.path().string()),
            concat("libmegalith_decoder.so is in none of ", folder.path().string(), "; look elsewhere"));
}

TEST(Plugin, RefusesAFileThatIsNoLibrary) {
  const TempDir folder;
  write_file(folder / kDecoder, "text");
  EXPECT_EQ(complaint_of_opening(kDecoder, folder.path().string())
                .rfind(concat("cannot load ", folder / kDecoder, ": "), 0),
            0u);
}

TEST(Plugin, RefusesOneOfAnotherVersion) {
  const TempDir folder;
  std::string bytes = read_file(lib(kDecoder));
  const std::string version = Plugin(kDecoder).function<const char*()>("megalith_plugin_version")();
  const std::string other(version.size(), '9');
  bool found = false;
  for (size_t at = bytes.find(version + '\0'); at != std::string::npos; at = bytes.find(version + '\0', at)) {
    bytes.replace(at, version.size(), other);
    found = true;
  }
  ASSERT_TRUE(found);
  write_file(folder / kDecoder, bytes);
  EXPECT_EQ(complaint_of_opening(kDecoder, folder.path().string()),
            concat(folder / kDecoder, " belongs to Megalith ", other, ", this is ", version,
                   "; build and install both together"));
}

// Opens a changed copy of a plugin that depends on a library that does not exist.
TEST(Plugin, NamesTheLibraryThatItNeeds) {
  const TempDir folder;
  std::string bytes = read_file(lib("libmegalith_yaml.so"));
  const size_t at = bytes.find("libyaml-cpp.so");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 3, "lob");
  write_file(folder / "libmegalith_yaml.so", bytes);
  const std::string needed = bytes.substr(at, bytes.find('\0', at) - at);
  EXPECT_EQ(complaint_of_opening("libmegalith_yaml.so", folder.path().string()),
            concat(folder / "libmegalith_yaml.so", " needs ", needed,
                   ", which is neither where the dynamic linker looks nor in ", folder.path().string(),
                   "; install it"));
}

}  // namespace
}  // namespace megalith::test
