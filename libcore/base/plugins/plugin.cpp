#include "libcore/base/plugins/plugin.h"

#include <filesystem>
#include <system_error>

#include <dlfcn.h>

#include "libcore/base/error.h"
#include "libcore/base/refusals.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {
namespace fs = std::filesystem;

std::string find_in(const std::vector<std::string>& folders, const std::string& file) {
  std::error_code error;
  for (const std::string& folder : folders)
    if (fs::path path = fs::path(folder) / file; fs::exists(path, error)) return path.string();
  return {};
}

/// The name of the missing library in a message of the dynamic linker; empty if the message reports another
/// problem.
std::string missing_library(const std::string& words) {
  const size_t end = words.find(": cannot open shared object file");
  if (end == std::string::npos) return {};
  const std::string name = words.substr(0, end);
  return name.find('/') == std::string::npos ? name : std::string();
}

/// Whether the dynamic linker's message says that it got no memory. It has other words for each call that it
/// makes.
bool lacks_memory(const std::string& words) {
  for (const char* const reason : {"failed to map segment", "cannot allocate", "Cannot allocate",
                                   "cannot create", "cannot map", "cannot change memory protections"})
    if (words.find(reason) != std::string::npos) return true;
  return false;
}

/// Opens a library. If the linker misses a library that it needs, opens the missing library by its full path
/// in the search folders and tries again: the linker then counts the SONAME as loaded.
void* open_library(const std::string& path, const Plugin::Search& search) {
  for (std::string before;;) {
    if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    const std::string words = dlerror(), missing = missing_library(words);
    if (lacks_memory(words)) fail(ErrorKind::kSystem, "cannot load ", path, ": ", out_of_memory().what());
    if (missing.empty() || missing == before) fail(ErrorKind::kDevice, "cannot load ", path, ": ", words);
    const std::string found = find_in(search.folders, missing);
    if (found.empty())
      fail(ErrorKind::kDevice, path, " needs ", missing,
           ", which is neither where the dynamic linker looks nor in ", join(search.folders, ", "), "; ",
           search.if_library_missing);
    open_library(found, search);
    before = missing;
  }
}

}  // namespace

Plugin::Plugin(std::string file, const Search& search) : file_(std::move(file)) {
  const std::string path = find_in(search.folders, file_);
  if (path.empty())
    fail(ErrorKind::kDevice, file_, " is in none of ", join(search.folders, ", "), "; ", search.if_missing);
  handle_ = open_library(path, search);
  const std::string version = function<const char*()>("megalith_plugin_version")();
  if (version != MEGALITH_VERSION)
    fail(ErrorKind::kDevice, path, " belongs to Megalith ", version, ", this is ", MEGALITH_VERSION,
         "; build and install both together");
}

Plugin::Plugin(std::string file)
    : Plugin(std::move(file), {.folders = own_library_folders(),
                               .if_missing = "it belongs next to libmegalith: install Megalith again",
                               .if_library_missing = "install it as tools/setup does"}) {}

void* Plugin::address(const char* name) const {
  void* const address = dlsym(handle_, name);
  if (address == nullptr)
    fail(ErrorKind::kDevice, file_, ": no function ", name,
         "; it belongs to another build of Megalith: build and install both together");
  return address;
}

}  // namespace megalith
