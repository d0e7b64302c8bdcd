#include "libcore/ops/cuda/cudnn/cudnn_library.h"

#include <memory>
#include <mutex>

#include <dlfcn.h>

#include "libcore/base/error.h"
#include "libcore/ops/backend/library_version.h"

namespace megalith::cuda::cudnn {
namespace {

constexpr size_t kLeast = 90000;

struct Opened {
  std::mutex mutex;  // guards the rest
  std::unique_ptr<Library> library;
  std::string why_not = "it was not asked for";
};
Opened& opened() {
  static Opened instance;
  return instance;
}

/// Whether the library has the function.
template <class Function>
bool find(void* handle, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

/// Null with `why_not` if it cannot be used.
std::unique_ptr<Library> load(const std::string& path, std::string& why_not) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    why_not = concat("libcudnn.so.9 cannot be loaded: ", dlerror());
    return nullptr;
  }
  auto made = std::make_unique<Library>();
  Library& l = *made;
  const bool all =
      find(handle, l.get_version, "cudnnGetVersion") && find(handle, l.error_text, "cudnnGetErrorString") &&
      find(handle, l.last_error, "cudnnGetLastErrorString") && find(handle, l.create, "cudnnCreate") &&
      find(handle, l.destroy, "cudnnDestroy") && find(handle, l.set_stream, "cudnnSetStream") &&
      find(handle, l.make, "cudnnBackendCreateDescriptor") &&
      find(handle, l.release, "cudnnBackendDestroyDescriptor") &&
      find(handle, l.set, "cudnnBackendSetAttribute") && find(handle, l.get, "cudnnBackendGetAttribute") &&
      find(handle, l.finalize, "cudnnBackendFinalize") && find(handle, l.execute, "cudnnBackendExecute");
  if (all && l.get_version() >= kLeast) return made;
  why_not = path + " is older than cuDNN 9.0";
  return nullptr;
}

}  // namespace

std::string Library::last_words() const {
  std::string text(512, '\0');
  last_error(text.data(), text.size());
  return text.substr(0, text.find('\0'));
}

std::string Library::version() const {
  return library_version(static_cast<int64_t>(get_version()));
}

std::string Library::words(Status status) const {
  const std::string more = last_words();
  return concat("cuDNN ", version(), ": ", error_text(status), more.empty() ? "" : "; ", more);
}

void Library::require(Status status, const char* what) const {
  if (status != 0) fail(ErrorKind::kDevice, "cuda: ", what, ": ", words(status));
}

void open(const std::string& path) {
  Opened& it = opened();
  const std::lock_guard lock(it.mutex);
  if (!it.library) it.library = load(path, it.why_not);
}

const Library* library() {
  Opened& it = opened();
  const std::lock_guard lock(it.mutex);
  return it.library.get();
}

std::string why_missing() {
  Opened& it = opened();
  const std::lock_guard lock(it.mutex);
  return it.why_not;
}

}  // namespace megalith::cuda::cudnn
