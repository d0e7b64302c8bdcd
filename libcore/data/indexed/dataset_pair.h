#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "libcore/io/files/file.h"
#include "libcore/io/run/lock_file.h"

namespace megalith {

struct Sidecar;

/// PREFIX.bin and PREFIX.idx while they are written. Locked, so that no other process writes them; destroyed
/// without commit(), nothing is left.
struct DatasetPair {
  /// Creates the folder of `prefix` when it is not there. kIo, also when another process writes the pair.
  explicit DatasetPair(std::string name);
  /// With a .bin that goes on after its first `kept` bytes, see AtomicFile. Where that one had its name
  /// already, the .idx loses its name first, so that at no moment there is an .idx without its .bin.
  DatasetPair(std::string name, uint64_t kept);

  /// commit() puts PREFIX.json in place, too; see make_sidecar().
  void add_sidecar(const Sidecar& described);
  void commit();

  std::string prefix;
  LockFile lock;
  AtomicFile bin, idx;
  std::unique_ptr<AtomicFile> sidecar;  // may be null
};

/// Puts all files of the pairs in place, once the bytes of all are on the disk. What the prefixes named
/// before (.idx, and a sidecar of ours) is removed first, then each .bin appears, then each .idx and sidecar;
/// each step begins when the one before would survive a power failure. So at no moment is there an .idx
/// without its complete .bin.
void commit(std::span<DatasetPair* const> pairs);

}  // namespace megalith
