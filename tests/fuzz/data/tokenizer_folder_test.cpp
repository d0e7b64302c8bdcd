#include "libcore/convert/sources/tokenizer_folder.h"

#include <filesystem>
#include <string>

#include "tests/fuzz/fuzz.h"

/// Reads a tokenizer's folder whose tokenizer.json is intact; its other JSON files are the input.
MEGALITH_FUZZ_TARGET(tokenizer_folder) {
  using namespace megalith;
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::path(fuzz::file_of(bytes, "tokenizer_folder/tokenizer_config.json")).parent_path();
  fuzz::file_of(bytes, "tokenizer_folder/special_tokens_map.json");
  fs::copy_file(fs::path(MEGALITH_SOURCE_DIR) / "tests/text/goldens/trained/tokenizer.json",
                folder / "tokenizer.json", fs::copy_options::skip_existing);
  (void)tokenizer_files_of(folder.string(), 1 << 20);
}
