#include "libcore/data/indexed/dataset_pair.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/data/indexed/sidecar.h"

namespace megalith {
namespace {

std::string with_folder(std::string prefix) {
  const std::filesystem::path folder = std::filesystem::path(prefix).parent_path();
  if (!folder.empty()) make_directories(folder);
  return prefix;
}

/// Removes an .idx; returns whether it existed.
bool remove_idx(const std::string& path) {
  if (::unlink(path.c_str()) == 0) return true;
  if (errno != ENOENT) fail(ErrorKind::kIo, path, ": cannot replace: ", std::strerror(errno));
  return false;
}

/// Returns the .bin's path. To continue a .bin that already has its final name, AtomicFile renames it back;
/// in that case the .idx is removed first, since an .idx must never exist without its .bin.
std::string bin_path(const std::string& prefix, uint64_t kept) {
  std::string path = prefix + ".bin";
  if (AtomicFile::takes_back(path, kept) && remove_idx(prefix + ".idx"))
    sync_directory(parent_or_here(prefix));
  return path;
}

void sync_folders(std::span<DatasetPair* const> pairs) {
  std::set<std::filesystem::path> folders;
  for (const DatasetPair* pair : pairs) folders.insert(parent_or_here(pair->prefix));
  for (const std::filesystem::path& folder : folders) sync_directory(folder);
}

}  // namespace

DatasetPair::DatasetPair(std::string name)
    : prefix(with_folder(std::move(name))), lock(prefix), bin(prefix + ".bin"), idx(prefix + ".idx") {}

DatasetPair::DatasetPair(std::string name, uint64_t kept)
    : prefix(with_folder(std::move(name))),
      lock(prefix),
      bin(bin_path(prefix, kept), kept),
      idx(prefix + ".idx") {}

void DatasetPair::add_sidecar(const Sidecar& described) {
  sidecar = make_sidecar(prefix, described);
  if (sidecar) sidecar->start_sync();
}

void DatasetPair::commit() {
  DatasetPair* const only = this;
  megalith::commit({&only, 1});
}

void commit(std::span<DatasetPair* const> pairs) {
  for (DatasetPair* pair : pairs) {
    pair->bin.start_sync();
    pair->idx.start_sync();
  }
  for (DatasetPair* pair : pairs) {
    // Waits for the .idx first: meanwhile the .bin's own thread continues to write to the disk.
    pair->idx.finish_sync();
    if (pair->sidecar) pair->sidecar->finish_sync();
    pair->bin.finish_sync();
  }
  bool removed = false;
  for (DatasetPair* pair : pairs) {
    remove_sidecar(pair->prefix);
    removed |= remove_idx(pair->idx.path());
  }
  if (removed) sync_folders(pairs);
  for (DatasetPair* pair : pairs) pair->bin.publish();
  sync_folders(pairs);
  for (DatasetPair* pair : pairs) {
    pair->idx.publish();
    if (pair->sidecar) pair->sidecar->publish();
  }
  sync_folders(pairs);
}

}  // namespace megalith
