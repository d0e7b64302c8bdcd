#pragma once

#include <cstdint>
#include <string>

#include "libcore/hash/xxh64.h"

namespace megalith {

class FileWriter;

/// The part of an interrupted file that is kept: its first bytes, after which a later writer continues.
struct KeptBytes {
  uint64_t bytes = 0;
  uint64_t hash = 0;  // XXH64 of these bytes; not used if there are none
};

/// Hashes the file's first `kept.bytes` bytes. Returns the hash state, to be continued with the bytes that
/// are appended. Throws kData if the hash differs from `kept.hash`: the file would become one that no
/// uninterrupted run writes.
Xxh64 hash_kept(FileWriter& file, const KeptBytes& kept);
/// Throws kData unless `found`, the hash of the bytes that the file has now, equals `kept.hash`.
void check_kept(const std::string& path, const KeptBytes& kept, const Xxh64& found);

}  // namespace megalith
