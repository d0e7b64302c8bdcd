#include "libcore/data/dataset_pair.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/data/sidecar.h"

namespace megalith {
namespace {

std::string with_folder(std::string prefix) {
  const std::filesystem::path folder = std::filesystem::path(prefix).parent_path();
  if (!folder.empty()) make_directories(folder);
  return prefix;
}

}  // namespace

DatasetPair::DatasetPair(std::string name)
    : prefix(with_folder(std::move(name))), lock(prefix), bin(prefix + ".bin"), idx(prefix + ".idx") {}

DatasetPair::DatasetPair(std::string name, uint64_t kept)
    : prefix(with_folder(std::move(name))), lock(prefix), bin(prefix + ".bin", kept), idx(prefix + ".idx") {}

void DatasetPair::commit() {
  bin.flush();  // a full disk shows here, while the old files are still in place
  idx.flush();
  remove_sidecar(prefix);
  if (::unlink(idx.path().c_str()) != 0 && errno != ENOENT)
    fail(ErrorKind::kIo, idx.path(), ": cannot replace: ", std::strerror(errno));
  bin.commit();
  idx.commit();
}

}  // namespace megalith
