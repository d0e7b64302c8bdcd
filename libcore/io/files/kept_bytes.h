#pragma once

#include <cstdint>
#include <string>

#include "libcore/hash/xxh64.h"

namespace megalith {

class FileWriter;

/// The beginning of a file that an interrupted writer left, after which a later one continues.
struct KeptBytes {
  uint64_t bytes = 0;
  uint64_t hash = 0;  // XXH64 of these bytes; not used if there are none
};

/// Hashes the file's first `kept.bytes` bytes and returns the hash state, to be continued with the bytes that
/// are appended. kData if they are not the kept bytes: appending would make a file that no uninterrupted run
/// makes.
Xxh64 hash_kept(FileWriter& file, const KeptBytes& kept);
/// Throws kData unless `found`, the hash of the file's bytes as they are now, equals `kept.hash`.
void check_kept(const std::string& path, const KeptBytes& kept, const Xxh64& found);

}  // namespace megalith
