#include "libcore/finetune/adapter_writer.h"

#include <utility>

#include "libcore/io/files/file.h"

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
    : folder_((make_directories(folder), folder)), weights_(weights_of(folder), std::move(tensors)) {}

void AdapterWriter::finish(const Json& config) {
  // Everything that can fail on a full disk is done before the old adapter is removed.
  AtomicFile settings(config_of(folder_));
  settings.write(config.dump(2) + "\n");
  settings.sync();
  weights_.sync();
  remove_file(config_of(folder_));
  weights_.finish();
  settings.commit();
}

}  // namespace megalith
