#include "libcore/ops/backend/attention_plugin.h"

#include "libcore/base/plugins/plugin.h"
#include "libcore/ops/backend/cuda_plugin.h"

namespace megalith {
namespace {

/// The plugin, which has tried to open libcudnn.
Plugin cudnn_plugin() {
  Plugin plugin = cuda_plugin();
  plugin.function<void(const std::string&)>("megalith_open_cudnn")(cuda_library_path("libcudnn.so.9"));
  return plugin;
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

bool use_cudnn(Backend& backend, const AttentionKind& kind) {
  return cudnn_plugin().function<bool(Backend&, const AttentionKind&)>("megalith_use_cudnn")(backend, kind);
}

}  // namespace megalith
