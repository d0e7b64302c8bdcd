#pragma once

#include <string>
#include <vector>

#include "libcore/base/plugins/library_folders.h"

namespace megalith {

/// A library of this project that is opened when it is first needed and then stays open. A program thus
/// starts even where the plugin's own dependencies are absent, and saves the time for linking them: most of a
/// program's start-up time is spent in the dynamic linker (oneDNN alone has 31,000 relocations).
/// `megalith-preprocess --version` took 3.6 ms with all libraries linked and 1.9 ms with plugins
/// (docs/benchmarks.md). A plugin may use everything in libmegalith. Its version must equal libmegalith's,
/// which the constructor checks.
class Plugin {
 public:
  /// Where to look for a plugin, and what to advise in messages if it cannot be opened.
  struct Search {
    std::vector<std::string> folders;
    std::string if_missing;          // what to do if the plugin is in none of the folders
    std::string if_library_missing;  // what to do if a library that the plugin needs is missing
  };
  /// Opens the library `file` ("libmegalith_NAME.so"). Throws kDevice if it cannot be opened.
  Plugin(std::string file, const Search& search);
  /// Opens a plugin that every installation has, in the folder of libmegalith. Throws kDevice.
  explicit Plugin(std::string file);

  /// The function that the plugin exports as `name`. Throws kDevice if it exports no such function.
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
