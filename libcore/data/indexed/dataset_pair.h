#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "libcore/io/files/file.h"
#include "libcore/io/run/lock_file.h"

namespace megalith {

struct Sidecar;

/// PREFIX.bin and PREFIX.idx while they are being written. A lock keeps other processes from writing them. If
/// the object is destroyed without commit(), no file is left, except an interrupted .bin that the second
/// constructor continued.
struct DatasetPair {
  /// `name` is the prefix; its folder is created if it does not exist. kIo; kComm if another process is
  /// writing the pair.
  explicit DatasetPair(std::string name);
  /// Continues an interrupted .bin after its first `kept` bytes (see AtomicFile). If that .bin already had
  /// its final name, the .idx is removed and the .bin is renamed back, in this order, so that there is never
  /// an .idx without its .bin.
  DatasetPair(std::string name, uint64_t kept);

  /// Adds PREFIX.json (see make_sidecar()). commit() puts it in place together with the pair.
  void add_sidecar(const Sidecar& dataset);
  void commit();

  std::string prefix;
  LockFile lock;
  AtomicFile bin, idx;
  std::unique_ptr<AtomicFile> sidecar;  // may be null
  std::string described = {};           // what the sidecar will hold
};

/// Puts all files of the pairs in place once all their bytes are on the disk, in this order: existing .idx
/// files and sidecars of the prefixes are removed, unless that sidecar is the same (the files of two attempts
/// at one shard then replace each other, each with the same bytes); each .bin gets its name; each .idx and
/// sidecar gets its name. Each step begins only when the previous one would survive a power failure, so that
/// there is never an .idx without its complete .bin.
void commit(std::span<DatasetPair* const> pairs);

}  // namespace megalith
