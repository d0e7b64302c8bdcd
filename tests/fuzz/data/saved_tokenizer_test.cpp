#include "libcore/text/saved_tokenizer.h"

#include <filesystem>
#include <string>

#include "libcore/base/text.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"
#include "tests/fuzz/fuzz.h"

/// Compares a checkpoint's tokenizer with the checkpoint's index, whose checksum is right, so that what it
/// lists is read.
MEGALITH_FUZZ_TARGET(saved_tokenizer) {
  using namespace megalith;
  const std::string index(bytes);
  const std::filesystem::path path = fuzz::file_of(
      concat(index, kIndexChecksumMember, "\"", hex64(xxh64(index)), "\"\n}"), "saved_tokenizer/index.json");
  const std::filesystem::path folder = path.parent_path() / kTokenizerFolder;
  std::filesystem::create_directories(folder);
  write_file((folder / "vocab.json").string(), "{\"a\": 0, \"b\": 1}");
  // kNoInput: the index lists a file that does not exist
  fuzz::accept({ErrorKind::kNoInput}, [&] { check_saved_tokenizer(folder.string()); });
}
