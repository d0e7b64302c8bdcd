#include "libcore/ops/cuda_plugin.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <dlfcn.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"

namespace megalith {
namespace {
namespace fs = std::filesystem;

constexpr const char* kPlugin = "libmegalith_cuda.so";

std::unique_ptr<Backend> make_gpu_backend() {
  try {
    return make_cuda_backend(0);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kDevice) throw;
    log("no GPU, so the CPU: ", error.what());
    return make_cpu_backend();
  }
}

/// Existing folders, each once.
class Folders {
 public:
  void add(const fs::path& folder) {
    std::error_code error;
    const fs::path real = fs::canonical(folder, error);
    if (error || !fs::is_directory(real, error)) return;
    if (std::find(list_.begin(), list_.end(), real.string()) == list_.end()) list_.push_back(real.string());
  }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

std::vector<std::string> entries_of(const char* variable) {
  std::vector<std::string> entries;
  const char* const value = std::getenv(variable);
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) entries.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return entries;
}

/// Subfolders; none when it cannot be read.
std::vector<fs::path> subfolders(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// The wheels of NVIDIA's libraries put them in site-packages/nvidia/NAME/lib.
void add_python_folders(Folders& folders) {
  for (const std::string& bin : entries_of("PATH"))
    for (const fs::path& python : subfolders(fs::path(bin).parent_path() / "lib"))
      if (python.filename().string().starts_with("python"))
        for (const fs::path& package : subfolders(python / "site-packages/nvidia"))
          folders.add(package / "lib");
}

std::string list_text(const std::vector<std::string>& folders) {
  std::string text;
  for (const std::string& folder : folders) text += (text.empty() ? "" : ", ") + folder;
  return text;
}

std::string find_in(const std::vector<std::string>& folders, const std::string& file) {
  std::error_code error;
  for (const std::string& folder : folders)
    if (fs::path path = fs::path(folder) / file; fs::exists(path, error)) return path.string();
  return {};
}

/// The library that the dynamic linker did not find, by its words; empty when something else was wrong.
std::string missing_library(const std::string& words) {
  const size_t end = words.find(": cannot open shared object file");
  if (end == std::string::npos) return {};
  const std::string name = words.substr(0, end);
  return name.find('/') == std::string::npos ? name : std::string();
}

/// Opens a library; each one that it needs and the linker does not find is opened first, by its full path,
/// from `folders`: its SONAME then counts as loaded.
void* open_library(const std::string& path, const std::vector<std::string>& folders) {
  for (std::string before;;) {
    if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    const std::string words = dlerror(), missing = missing_library(words);
    if (missing.empty() || missing == before) fail(ErrorKind::kDevice, "cannot load ", path, ": ", words);
    const std::string found = find_in(folders, missing);
    if (found.empty())
      fail(ErrorKind::kDevice, path, " needs ", missing,
           ", which is neither where the dynamic linker looks nor in ", list_text(folders),
           "; install NVIDIA's libraries, or name their folder in MEGALITH_CUDA_LIBS");
    open_library(found, folders);
    before = missing;
  }
}

template <class Function>
Function* find_function(void* plugin, const char* name) {
  void* const address = dlsym(plugin, name);
  if (address == nullptr)
    fail(ErrorKind::kDevice, kPlugin, ": no function ", name,
         "; it is not of this Megalith: build and install both");
  return reinterpret_cast<Function*>(address);
}

void* open_plugin() {
  const std::vector<std::string> folders = cuda_library_folders();
  const std::string path = find_in(folders, kPlugin);
  if (path.empty())
    fail(ErrorKind::kDevice, kPlugin, " is in none of ", list_text(folders),
         "; build Megalith where the CUDA toolkit is (docs/cuda.md), name the plugin's folder in "
         "MEGALITH_CUDA_LIBS, or choose --device cpu");
  void* const plugin = open_library(path, folders);
  const std::string version = find_function<const char*()>(plugin, "megalith_cuda_version")();
  if (version != MEGALITH_VERSION)
    fail(ErrorKind::kDevice, path, " is of Megalith ", version, ", this is ", MEGALITH_VERSION,
         "; build and install both together");
  return plugin;
}

}  // namespace

std::vector<std::string> cuda_library_folders() {
  Folders folders;
  for (const std::string& folder : entries_of("MEGALITH_CUDA_LIBS")) folders.add(folder);
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.add(program.parent_path().parent_path() / "lib");
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&cuda_library_folders), &self) != 0)
    folders.add(fs::path(self.dli_fname).parent_path());
  for (const std::string& folder : entries_of("LD_LIBRARY_PATH")) folders.add(folder);
  folders.add("/usr/local/cuda/lib64");
  add_python_folders(folders);
  return folders.take();
}

std::unique_ptr<Backend> make_cuda_backend(int device) {
  void* const plugin = open_plugin();
  return std::unique_ptr<Backend>(find_function<Backend*(int)>(plugin, "megalith_cuda_backend")(device));
}

std::unique_ptr<Backend> make_backend(std::string_view device) {
  if (device == "cpu") return make_cpu_backend();
  if (device == "cuda") return make_cuda_backend(0);
  if (device == "gpu") return make_gpu_backend();
  fail(ErrorKind::kUsage, "--device \"", device, "\": want cpu, cuda or gpu");
}

}  // namespace megalith
