#include "libcore/data/indexed/dataset_pair.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/threads/beside.h"

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

/// Removes the sidecar and the .idx of a dataset that the pair replaces; returns whether there was an .idx.
/// Only what was there and differs is removed: where nothing locks, another process may be putting the same
/// files in place, and then each of the two replaces a file by one with the same bytes.
bool remove_other(const DatasetPair& pair) {
  const std::string path = sidecar_path(pair.prefix);
  const bool described = is_sidecar(path), indexed = file_exists(pair.idx.path());
  if (described && read_own_file(path) == pair.described) return false;
  if (described) remove_sidecar(pair.prefix);
  return indexed && remove_idx(pair.idx.path());
}

/// Waits until all bytes of the pairs are on the disk. A sync takes a disk tens of milliseconds, however
/// small the file is, but many syncs at a time take hardly longer.
void finish_syncs(std::span<DatasetPair* const> pairs) {
  constexpr size_t kPairs = 4, kAtATime = 16;  // a thread for so many pairs, and at most so many threads
  std::atomic<size_t> next{0};
  run_beside(std::clamp<size_t>(pairs.size() / kPairs, 1, kAtATime), [&](size_t) {
    for (size_t i = next++; i < pairs.size(); i = next++) {
      DatasetPair& pair = *pairs[i];
      // Waits for the .idx first: meanwhile the .bin's own thread continues to write to the disk.
      pair.idx.finish_sync();
      if (pair.sidecar) pair.sidecar->finish_sync();
      pair.bin.finish_sync();
    }
  });
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

void DatasetPair::add_sidecar(const Sidecar& dataset) {
  sidecar = make_sidecar(prefix, dataset);
  described = sidecar ? sidecar_text(dataset) : std::string();
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
  finish_syncs(pairs);
  bool removed = false;
  for (DatasetPair* pair : pairs) {
    pair->lock.check();
    removed |= remove_other(*pair);
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
