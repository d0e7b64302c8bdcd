#include <filesystem>

#include "libcore/dialects/paddle/paddle_dataset.h"
#include "tests/fuzz/fuzz.h"

/// Reads PaddleNLP's NAME_idx.npz beside an intact NAME_ids.npy.
MEGALITH_FUZZ_TARGET(npz) {
  using namespace megalith;
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(fuzz::file_of(bytes, "npz/set_idx.npz")).parent_path();
  fs::copy_file(fs::path(MEGALITH_SOURCE_DIR) / "tests/fuzz/corpus/npy/six.npy", folder / "set_ids.npy",
                fs::copy_options::skip_existing);
  // Each input makes another pair of files, which is removed again.
  fuzz::accept({ErrorKind::kUsage}, [&] { dataset_of_folder(folder.string(), ""); });
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("set.")) fs::remove(entry.path());
}
