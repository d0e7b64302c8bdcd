#include "libcore/io/files/kept_bytes.h"

#include <algorithm>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/io/files/file_writer.h"

namespace megalith {

void check_kept(const std::string& path, const KeptBytes& kept, const Xxh64& found) {
  if (kept.bytes > 0 && found.digest() != kept.hash)
    fail(ErrorKind::kData, path, ": its first ", kept.bytes, " bytes have the XXH64 ", hex64(found.digest()),
         ", wanted ", hex64(kept.hash), ": they were changed after they were written");
}

Xxh64 hash_kept(FileWriter& file, const KeptBytes& kept) {
  Xxh64 hash;
  std::vector<char> block(kWritePiece);
  for (uint64_t at = 0; at < kept.bytes; at += block.size()) {
    block.resize(static_cast<size_t>(std::min<uint64_t>(kWritePiece, kept.bytes - at)));
    file.read_back(at, block.data(), block.size());
    hash.update(block.data(), block.size());
  }
  check_kept(file.path(), kept, hash);
  return hash;
}

}  // namespace megalith
