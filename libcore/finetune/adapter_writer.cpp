#include "libcore/finetune/adapter_writer.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/io/file.h"

namespace megalith {
namespace {

std::string config_of(const std::string& folder) {
  return folder + "/adapter_config.json";
}

std::string weights_of(const std::string& folder) {
  return folder + "/adapter_model.safetensors";
}

}  // namespace

AdapterWriter::AdapterWriter(const std::string& folder, std::vector<TensorSpec> tensors)
    : folder_((make_directories(folder), folder)),
      config_lock_(config_of(folder)),
      weights_lock_(weights_of(folder)),
      weights_(weights_of(folder), std::move(tensors)) {}

void AdapterWriter::remove_old() const {
  std::error_code error;
  const bool removed = std::filesystem::remove(config_of(folder_), error);
  if (error) fail(ErrorKind::kIo, config_of(folder_), ": cannot be replaced: ", error.message());
  if (removed) sync_directory(folder_);
}

void AdapterWriter::finish(const Json& config) {
  // All that a full disk can prevent comes before the old adapter goes.
  AtomicFile settings(config_of(folder_));
  settings.write(config.dump(2) + "\n");
  settings.sync();
  weights_.sync();
  remove_old();
  weights_.finish();
  settings.commit();
}

}  // namespace megalith
