#include "libcore/ops/backend/attention_plugin.h"

#include "libcore/base/plugins/plugin.h"
#include "libcore/ops/backend/cuda_plugin.h"

namespace megalith {
namespace {

/// The plugin, which has tried to open libcudnn. Both are searched for once.
const Plugin& cudnn_plugin() {
  static const Plugin kPlugin = cuda_plugin();
  static const std::string kPath = cuda_library_path("libcudnn.so.9");
  kPlugin.function<void(const std::string&)>("megalith_open_cudnn")(kPath);
  return kPlugin;
}

}  // namespace

AttentionLibrary attention_library(const Backend& backend, std::string* why_not) {
  AttentionLibrary library;
  cudnn_plugin().function<void(const Backend&, AttentionLibrary&, std::string*)>(
      "megalith_attention_library")(backend, library, why_not);
  return library;
}

std::string trouble_with_cudnn(Backend& backend, const AttentionKind& kind) {
  std::string trouble;
  cudnn_plugin().function<void(Backend&, const AttentionKind&, std::string&)>("megalith_trouble_with_cudnn")(
      backend, kind, trouble);
  return trouble;
}

std::string use_cudnn(Backend& backend, const AttentionKind& kind) {
  std::string trouble;
  cudnn_plugin().function<void(Backend&, const AttentionKind&, std::string&)>("megalith_use_cudnn")(
      backend, kind, trouble);
  return trouble;
}

}  // namespace megalith
