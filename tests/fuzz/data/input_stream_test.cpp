#include "libcore/io/streams/input_stream.h"

#include <vector>

#include "tests/fuzz/fuzz.h"

/// Decompresses a file by its magic number: gzip, zstd, bzip2, xz, or none. Stops after 4 MiB.
MEGALITH_FUZZ_TARGET(input_stream) {
  using namespace megalith;
  InputStream stream(fuzz::file_of(bytes));
  std::vector<char> block(1 << 16);
  for (size_t all = 0; all < (size_t{4} << 20);) {
    const size_t read = stream.read(block.data(), block.size());
    if (read == 0) return;
    all += read;
  }
}
