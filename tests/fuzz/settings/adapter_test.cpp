#include "libcore/convert/output/adapter.h"

#include <filesystem>

#include "tests/fuzz/fuzz.h"

/// Reads the adapter_config.json of an adapter whose tensors are intact.
MEGALITH_FUZZ_TARGET(adapter) {
  using namespace megalith;
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(fuzz::file_of(bytes, "adapter/adapter_config.json")).parent_path();
  const char* const kind = bytes.find("PREFIX") == bytes.npos ? "gpt2-lora" : "gpt2-prefix";
  fs::copy_file(fs::path(MEGALITH_SOURCE_DIR) / "tests/finetune/goldens" / kind / "adapter_model.safetensors",
                folder / "adapter_model.safetensors", fs::copy_options::overwrite_existing);
  adapter_kind(folder.string());
  const Adapter adapter(folder.string());
}
