#pragma once

#include <span>
#include <string>
#include <vector>

namespace megalith {

/// Existing folders as canonical paths, each once, in the order in which they were added.
class FolderList {
 public:
  void add(const std::string& folder);
  std::vector<std::string> take() { return std::move(folders_); }

 private:
  std::vector<std::string> folders_;
};

/// Where the plugins of this build are: the folder of this library, and lib/ next to the program's folder.
std::vector<std::string> own_library_folders();

/// A library of ours that is opened when it is first needed, and stays open. Programs thus start without the
/// libraries that it needs, which may be absent, and without the time to link them. Most of a program's start
/// is spent in the dynamic linker (oneDNN alone has 31,000 relocations): `megalith-preprocess --version` took
/// 3.6 ms with all libraries, 1.9 ms with plugins (docs/benchmarks.md). A plugin may use everything in
/// libmegalith and must have the same version, which is checked.
class Plugin {
 public:
  /// Where to look, and the advice in messages.
  struct Search {
    std::vector<std::string> folders;
    std::string if_missing;  // what to do if the plugin is in none of the folders
    std::string
        if_library_missing;  // the same for a library that it needs, which is looked for in these folders too
  };
  /// Opens `file` ("libmegalith_NAME.so"). Throws kDevice.
  Plugin(std::string file, const Search& search);
  /// A plugin that every installation has, next to libmegalith.
  explicit Plugin(std::string file);

  /// The function that it exports by that name. Throws kDevice.
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(address(name));
  }

 private:
  void* address(const char* name) const;

  std::string file_;
  void* handle_ = nullptr;
};

}  // namespace megalith
