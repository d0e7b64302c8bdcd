#pragma once

#include <span>
#include <string>
#include <vector>

namespace megalith {

/// Existing folders, as canonical paths, each once, in the order in which they are added.
class FolderList {
 public:
  void add(const std::string& folder);
  std::vector<std::string> take() { return std::move(folders_); }

 private:
  std::vector<std::string> folders_;
};

/// Where the plugins of this build lie: the folder of this library, and lib/ beside the program's folder.
std::vector<std::string> own_library_folders();

/// A library of ours that is opened when it is first needed, and stays. Programs then start without the
/// libraries that it needs, which may be absent, and without the time to link them: most of a program's start
/// goes to the dynamic linker (oneDNN alone has 31,000 relocations), and `megalith-preprocess --version` took
/// 3.6 ms with all libraries, 1.9 ms with plugins (docs/benchmarks.md). It may use what libmegalith has, and
/// must be of the same version, which is checked.
class Plugin {
 public:
  /// Where to look, and what messages advise.
  struct Search {
    std::vector<std::string> folders;
    std::string if_missing;          // what to do when the plugin is in none of the folders
    std::string if_library_missing;  // or a library that it needs: these are looked for there, too
  };
  /// Opens `file` ("libmegalith_NAME.so"). Throws kDevice.
  Plugin(std::string file, const Search& search);
  /// One that every installation has, beside libmegalith.
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
