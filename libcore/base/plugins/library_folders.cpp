#include "libcore/base/plugins/library_folders.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <dlfcn.h>

namespace megalith {
namespace {
namespace fs = std::filesystem;
}  // namespace

void FolderList::add(const std::string& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error || !fs::is_directory(real, error)) return;
  if (std::find(folders_.begin(), folders_.end(), real.string()) == folders_.end())
    folders_.push_back(real.string());
}

std::vector<std::string> own_library_folders() {
  FolderList folders;
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&own_library_folders), &self) != 0)
    folders.add(fs::path(self.dli_fname).parent_path().string());
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.add((program.parent_path().parent_path() / "lib").string());
  return folders.take();
}

std::vector<std::string> plugins_in(const std::vector<std::string>& folders) {
  std::vector<std::string> found;
  std::error_code error;
  for (const PluginFacts& plugin : kPlugins)
    if (std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
          return fs::exists(fs::path(folder) / (std::string("libmegalith_") + plugin.name + ".so"), error);
        }))
      found.emplace_back(plugin.name);
  return found;
}

}  // namespace megalith
