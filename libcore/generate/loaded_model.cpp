#include "libcore/generate/loaded_model.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <new>
#include <string>
#include <string_view>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/refusals.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/params_io.h"
#include "libcore/generate/prefix.h"
#include "libcore/ops/backend/cuda_plugin.h"

namespace megalith {
namespace {

/// Runs `load`. If that needs more memory than there is, the Error says that the weights are what is too
/// large. `weights`: how many there are, and of which type.
void load_weights(const ModelSource& source, const std::string& weights, const std::function<void()>& load) {
  const auto refuse = [&](const NoMemory& error) {
    fail(error.kind(), source.path(), ": its weights, ", weights, ", are too large for the memory of this ",
         error.kind() == ErrorKind::kDevice ? "device" : "machine", ": ", error.what());
  };
  try {
    load();
  } catch (const NoMemory& error) {
    refuse(error);
  } catch (const std::bad_alloc&) {
    refuse(out_of_memory());
  }
}

/// The configuration for texts of up to `length` tokens (LoadOptions::length).
ModelConfig config_for(ModelConfig config, int64_t length) {
  if (!config.rotates_by_length()) return config;
  const int64_t most = length > 0 ? length : config.rope_original_positions;
  config.seq_length = static_cast<int>(std::min<int64_t>(config.max_positions, most));
  if (length == 0) config.max_positions = config.seq_length;
  return config;
}

}  // namespace

LoadedModel::LoadedModel(const ModelSource& source, const LoadOptions& options)
    : own_backend_(options.backend ? nullptr : make_backend(options.device)),
      stream_((options.backend ? *options.backend : *own_backend_).make_stream()),
      stage_(config_for(source.config(), options.length), {.count = source.config().layers}, options.split,
             table_) {
  const auto start = std::chrono::steady_clock::now();
  if (!options.adapter.empty()) read_adapter(source, options);
  const TensorFile& tensors = merged_ ? *merged_ : source.tensors();
  const bool as_stored = std::string_view(stream_.backend().name()) == "cpu" && !options.bf16;
  if (!as_stored && options.int8)
    fail(ErrorKind::kUsage, "--int8 is for the CPU; leave it out with --device ", options.device);
  const DType dtype = options.bf16 ? DType::kBf16 : source.dtype();
  const std::string_view type = options.int8 ? "int8" : name_of(dtype);
  load_weights(source, concat(format_count(table_.elements()), " numbers in ", type), [&] {
    if (as_stored) {
      weights_.emplace(tensors, table_, stream_, WeightOptions{.int8 = options.int8});
    } else {
      params_.emplace(table_, stream_, StoreOptions{.dtype = dtype, .grads = false});
      load_params(tensors, table_, stream_);
    }
  });
  report(type, seconds_since(start));
}

void LoadedModel::read_adapter(const ModelSource& source, const LoadOptions& options) {
  adapter_.emplace(options.adapter);
  if (adapter_->kind() == kPeftPrefix)
    prefix_ = read_prefix(*adapter_, source.config(), options.split);
  else
    merged_ = merge_adapter(source.tensors(), source.config(), *adapter_);
}

void LoadedModel::report(std::string_view type, double seconds) const {
  const int64_t bytes = weights_ ? weights_->bytes() : static_cast<int64_t>(params_->values().bytes());
  log("model: ", format_count(table_.elements()), " parameters, ", format_bytes(static_cast<double>(bytes)),
      " of weights (", type,
      weights_ && weights_->mapped() > 0
          ? concat(", ", format_bytes(static_cast<double>(weights_->mapped())), " of them in the file")
          : std::string(),
      "), loaded in ", format_fixed(seconds * 1e3, 1), " ms");
}

}  // namespace megalith
