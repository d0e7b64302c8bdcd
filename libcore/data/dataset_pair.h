#pragma once

#include <cstdint>
#include <string>

#include "libcore/base/file.h"
#include "libcore/base/lock_file.h"

namespace megalith {

/// PREFIX.bin and PREFIX.idx while they are written, by no other process. Destroyed without commit(): nothing
/// is left.
struct DatasetPair {
  /// Creates the folder of `prefix` when it is not there. kIo, also when another process writes the pair.
  explicit DatasetPair(std::string prefix);
  /// With a .bin that goes on behind its first `kept` bytes, see AtomicFile.
  DatasetPair(std::string prefix, uint64_t kept);

  /// Puts both files in place. What the prefix named before (.idx, and a sidecar of ours, see sidecar.h) is
  /// removed first, then the .bin appears, then the .idx: at no moment is there an .idx without its complete
  /// .bin.
  void commit();

  std::string prefix;
  LockFile lock;
  AtomicFile bin, idx;
};

}  // namespace megalith
