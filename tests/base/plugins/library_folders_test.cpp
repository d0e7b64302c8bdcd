#include "libcore/base/plugins/library_folders.h"

#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {
namespace fs = std::filesystem;

TEST(FolderList, HasEachExistingFolderOnce) {
  const test::TempDir dir;
  FolderList folders;
  fs::create_directory(dir / "a");
  fs::create_directory_symlink(dir / "a", dir / "link");
  for (const char* name : {"a", "none", "link", "a/../a"}) folders.add(dir / name);
  EXPECT_EQ(folders.take(), std::vector{fs::canonical(dir / "a").string()});
}

TEST(Plugins, AreFoundByTheirFiles) {
  const test::TempDir dir;
  for (const char* name :
       {"libmegalith_yaml.so", "libmegalith_cuda.so", "libmegalith_core.so", "libmegalith.so"})
    write_file(dir / name, "");
  EXPECT_EQ(plugins_in({dir / "none", dir.path().string()}), (std::vector<std::string>{"cuda", "yaml"}));
}

TEST(Plugins, OfThisBuildAreAllKnown) {
  std::set<std::string> known = {"core"};
  for (const PluginFacts& plugin : kPlugins) known.insert(plugin.name);
  for (const auto& entry : fs::directory_iterator(MEGALITH_BINARY_DIR "/lib")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("libmegalith_") || entry.path().extension() != ".so") continue;
    EXPECT_TRUE(known.contains(entry.path().stem().string().substr(std::string("libmegalith_").size())))
        << name;
  }
}

}  // namespace
}  // namespace megalith
