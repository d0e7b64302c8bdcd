#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "libcore/io/files/file.h"
#include "libcore/io/run/lock_file.h"

namespace megalith {

struct Sidecar;

/// PREFIX.bin and PREFIX.idx while they are being written. Locked, so that no other process writes them.
/// Destroyed without commit(), nothing is left.
struct DatasetPair {
  /// Creates the folder of `prefix` if it does not exist. kIo, also if another process is writing the pair.
  explicit DatasetPair(std::string name);
  /// With a .bin that continues after its first `kept` bytes, see AtomicFile. If that .bin already had its
  /// name, the .idx is removed first, so that there is never an .idx without its .bin.
  DatasetPair(std::string name, uint64_t kept);

  /// commit() also puts PREFIX.json in place; see make_sidecar().
  void add_sidecar(const Sidecar& described);
  void commit();

  std::string prefix;
  LockFile lock;
  AtomicFile bin, idx;
  std::unique_ptr<AtomicFile> sidecar;  // may be null
};

/// Puts all files of the pairs in place once all their bytes are on the disk. What the prefixes named before
/// (.idx, and a sidecar of ours) is removed first, then each .bin appears, then each .idx and sidecar. Each
/// step begins only when the previous one would survive a power failure. So there is never an .idx without
/// its complete .bin.
void commit(std::span<DatasetPair* const> pairs);

}  // namespace megalith
