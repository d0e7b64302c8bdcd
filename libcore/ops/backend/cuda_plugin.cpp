#include "libcore/ops/backend/cuda_plugin.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/plugins/plugin.h"
#include "libcore/threads/last_wait.h"

namespace megalith {
namespace {
namespace fs = std::filesystem;

void log_no_gpu(const Error& error) {
  log("no GPU, using the CPU: ", error.what());
}

std::unique_ptr<Backend> make_gpu_backend() {
  try {
    return make_cuda_backend(0);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kDevice) throw;
    log_no_gpu(error);
    return make_cpu_backend();
  }
}

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

/// The subfolders; none if the folder cannot be read.
std::vector<fs::path> subfolders(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// The wheels of NVIDIA's libraries install them in lib/pythonN/site-packages/nvidia/NAME/lib of an
/// environment. `lib` is that environment's.
void add_python_folders(FolderList& folders, const fs::path& lib) {
  for (const fs::path& python : subfolders(lib))
    if (python.filename().string().starts_with("python"))
      for (const fs::path& package : subfolders(python / "site-packages/nvidia"))
        folders.add((package / "lib").string());
}

/// The folder lib of the environment into which a wheel installed this program, as lib/megalith/bin/NAME.
fs::path own_environment() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path().parent_path();
}

}  // namespace

std::vector<std::string> cuda_library_folders() {
  FolderList folders;
  for (const std::string& folder : entries_of("MEGALITH_CUDA_LIBS")) folders.add(folder);
  for (const std::string& folder : own_library_folders()) folders.add(folder);
  for (const std::string& folder : entries_of("LD_LIBRARY_PATH")) folders.add(folder);
  add_python_folders(folders, own_environment());
  folders.add("/usr/local/cuda/lib64");
  for (const std::string& bin : entries_of("PATH"))
    add_python_folders(folders, fs::path(bin).parent_path() / "lib");
  return folders.take();
}

std::string cuda_library_path(const std::string& name) {
  std::error_code error;
  for (const std::string& folder : cuda_library_folders())
    if (const fs::path path = fs::path(folder) / name; fs::exists(path, error)) return path.string();
  return name;
}

Plugin cuda_plugin() {
  return Plugin(
      "libmegalith_cuda.so",
      {.folders = cuda_library_folders(),
       .if_missing = "build Megalith where the CUDA toolkit is (docs/cuda.md), name the plugin's folder in "
                     "MEGALITH_CUDA_LIBS, or choose --device cpu",
       .if_library_missing = "install NVIDIA's libraries, or name their folder in MEGALITH_CUDA_LIBS"});
}

std::unique_ptr<Backend> make_cuda_backend(int device) {
  return std::unique_ptr<Backend>(
      cuda_plugin().function<Backend*(int, const LastWaits&)>("megalith_cuda_backend")(device, {}));
}

cuda::DeviceMemory cuda_memory(int device) {
  return cuda_plugin().function<cuda::DeviceMemory(int)>("megalith_cuda_memory")(device);
}

cuda::DeviceMemory cuda_memory(const Backend& backend) {
  return cuda_plugin().function<cuda::DeviceMemory(const Backend&)>("megalith_cuda_memory_of")(backend);
}

cuda::DeviceFacts cuda_facts(int device) {
  cuda::DeviceFacts facts;
  cuda_plugin().function<void(int, cuda::DeviceFacts&)>("megalith_cuda_facts")(device, facts);
  return facts;
}

int cuda_devices() {
  return cuda_plugin().function<int()>("megalith_cuda_devices")();
}

std::string cuda_device_address(int device) {
  std::string address;
  cuda_plugin().function<void(int, std::string&)>("megalith_cuda_device_address")(device, address);
  return address;
}

void set_device_watch(Backend& backend, DeviceWatch* watch) {
  static auto* const kSet = cuda_plugin().function<void(Backend&, DeviceWatch*)>("megalith_set_device_watch");
  kSet(backend, watch);
}

/// Makes no backend: each rank's process asks, and its backend may be that of another device.
std::string resolved_device(const std::string& device) {
  if (device != "gpu") return device;
  try {
    cuda_facts(0);
    return "cuda";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kDevice) throw;
    log_no_gpu(error);
    return "cpu";
  }
}

std::unique_ptr<Backend> make_backend(std::string_view device) {
  if (device == "cpu") return make_cpu_backend();
  if (device == "cuda") return make_cuda_backend(0);
  if (device == "gpu") return make_gpu_backend();
  fail(ErrorKind::kUsage, "--device \"", device, "\": wanted cpu, cuda or gpu");
}

}  // namespace megalith
