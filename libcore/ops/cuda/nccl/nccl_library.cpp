#include "libcore/ops/cuda/nccl/nccl_library.h"

#include <memory>
#include <mutex>

#include <dlfcn.h>

#include "libcore/base/error.h"
#include "libcore/ops/backend/library_version.h"

namespace megalith::cuda {
namespace {

constexpr int kLeast = NCCL_VERSION(2, 22, 0);  // the first that aborts several communicators together

std::mutex mutex;  // guards opened
std::unique_ptr<NcclLibrary> opened;

/// Opens a library, which stays open, and finds its functions.
class Finder {
 public:
  explicit Finder(const std::string& path)
      : path_(path), handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr)
      fail(ErrorKind::kDevice,
           "cuda: several ranks need NCCL, and libnccl.so.2 cannot be loaded: ", dlerror(),
           "; install NVIDIA's NCCL (the package libnccl2, or the wheel nvidia-nccl-cu13), or name its "
           "folder in MEGALITH_CUDA_LIBS");
  }
  template <class Function>
  void find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (function == nullptr)
      fail(ErrorKind::kDevice, "cuda: ", path_, " has no function ", name, "; install NCCL 2.22 or later");
  }

 private:
  std::string path_;
  void* handle_;
};

int version_of(const NcclLibrary& library) {
  int version = 0;
  library.get_version(&version);
  return version;
}

std::unique_ptr<NcclLibrary> load(const std::string& path) {
  const Finder finder(path);
  auto library = std::make_unique<NcclLibrary>();
  finder.find(library->get_version, "ncclGetVersion");
  if (const int version = version_of(*library); version < kLeast)
    fail(ErrorKind::kDevice, "cuda: ", path, " is NCCL ", library_version(version), "; install ",
         library_version(kLeast), " or later");
  finder.find(library->get_unique_id, "ncclGetUniqueId");
  finder.find(library->start, "ncclCommInitRankConfig");
  finder.find(library->split, "ncclCommSplit");
  finder.find(library->get_state, "ncclCommGetAsyncError");
  finder.find(library->finalize, "ncclCommFinalize");
  finder.find(library->destroy, "ncclCommDestroy");
  finder.find(library->abort, "ncclCommAbort");
  finder.find(library->error_text, "ncclGetErrorString");
  finder.find(library->last_error, "ncclGetLastError");
  finder.find(library->begin_group, "ncclGroupStart");
  finder.find(library->end_group, "ncclGroupEnd");
  finder.find(library->all_reduce, "ncclAllReduce");
  finder.find(library->all_gather, "ncclAllGather");
  finder.find(library->reduce_scatter, "ncclReduceScatter");
  finder.find(library->reduce, "ncclReduce");
  finder.find(library->broadcast, "ncclBroadcast");
  finder.find(library->send, "ncclSend");
  finder.find(library->receive, "ncclRecv");
  return library;
}

}  // namespace

std::string NcclLibrary::version() const {
  return library_version(version_of(*this));
}

const NcclLibrary& open_nccl(const std::string& path) {
  const std::lock_guard lock(mutex);
  if (!opened) opened = load(path);
  return *opened;
}

const NcclLibrary& nccl() {
  const std::lock_guard lock(mutex);
  if (!opened) fail(ErrorKind::kInternal, "cuda: NCCL is used before it is opened");
  return *opened;
}

}  // namespace megalith::cuda
