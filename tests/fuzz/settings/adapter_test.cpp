#include "libcore/convert/output/adapter.h"

#include <filesystem>

#include "tests/fuzz/fuzz.h"

/// Reads the adapter_config.json of an adapter whose tensors are intact.
MEGALITH_FUZZ_TARGET(adapter) {
  using namespace megalith;
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(fuzz::file_of(bytes, "adapter_config.json")).parent_path();
  fs::copy_file(fs::path(MEGALITH_SOURCE_DIR) / "tests/finetune/goldens/gpt2-lora/adapter_model.safetensors",
                folder / "adapter_model.safetensors", fs::copy_options::skip_existing);
  adapter_kind(folder.string());
  const Adapter adapter(folder.string());
}
