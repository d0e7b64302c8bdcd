#include <filesystem>
#include <string>

#include "libcore/convert/sources/megatron_source.h"
#include "tests/fuzz/fuzz.h"

// Reads the metadata of a distributed checkpoint whose other files are intact.
MEGALITH_FUZZ_TARGET(dist_metadata) {
  using namespace megalith;
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(fuzz::file_of(bytes, ".metadata")).parent_path();
  const fs::path golden =
      fs::path(MEGALITH_SOURCE_DIR) / "tests/convert/goldens/megatron/dist_layers/iter_0000005";
  for (const auto& entry : fs::directory_iterator(golden))
    if (entry.path().filename() != ".metadata")
      fs::copy_file(entry.path(), folder / entry.path().filename(), fs::copy_options::skip_existing);
  // kNoInput: the metadata names a .distcp file that does not exist
  fuzz::accept({ErrorKind::kNoInput}, [&] { open_megatron(folder.string(), {.vocab_size = 6}); });
}
