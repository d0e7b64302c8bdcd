#pragma once

#include <cstdint>
#include <string>

#include "libcore/hash/xxh64.h"

namespace megalith {

class FileWriter;

/// The beginning of a file that an interrupted writer left, after which a later one continues.
struct KeptBytes {
  uint64_t bytes = 0;
  uint64_t hash = 0;  // XXH64 of them; of no bytes: any
};

/// The running hash of a file whose first bytes must be the kept ones. kData if they differ: appending to
/// them would make a file that no uninterrupted run makes.
Xxh64 hash_kept(FileWriter& file, const KeptBytes& kept);
/// Throws kData unless `found`, of the bytes as they are now, equals what was written.
void check_kept(const std::string& path, const KeptBytes& kept, const Xxh64& found);

}  // namespace megalith
