#include <filesystem>

#include "libcore/checkpoint/views/weights_folder.h"
#include "tests/fuzz/fuzz.h"

/// Reads model.safetensors.index.json beside an intact file of weights.
MEGALITH_FUZZ_TARGET(weights_index) {
  using namespace megalith;
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::path(fuzz::file_of(bytes, "weights_index/model.safetensors.index.json")).parent_path();
  fs::copy_file(fs::path(MEGALITH_SOURCE_DIR) / "tests/fuzz/corpus/safetensors/two.safetensors",
                folder / "part.safetensors", fs::copy_options::skip_existing);
  // kNoInput: the index names a file that does not exist
  fuzz::accept({ErrorKind::kNoInput}, [&] { WeightsFolder(folder.string()).tensors(); });
}
