#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "libcore/convert/output/adapter.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/generate/generate.h"
#include "libcore/generate/sources/weight_store.h"
#include "libcore/model/param_store.h"
#include "libcore/ops/backend/backend.h"

namespace megalith {

/// How to load a model.
struct LoadOptions {
  std::string adapter = {};  // a peft folder; empty: the model alone
  std::string device = "cpu";
  bool int8 = false;           // WeightOptions::int8; only on the CPU
  bool bf16 = false;           // weights and activations in bf16, whatever the stored type is; not with int8
  Backend* backend = nullptr;  // where it runs, which must outlive it; null: a backend for `device`
  TensorSplit split = {};      // this rank's place among those that share the matrices; not with int8
  /// Tokens of the longest text, for models whose rotation depends on it. 0: such a model has no more
  /// positions than its original context.
  int64_t length = 0;
};

/// A model in memory, ready to generate: all of it, or this rank's part of its matrices. The source must
/// outlive it.
class LoadedModel {
 public:
  /// Loads weights and adapter, and logs time and memory. kUsage for options that the device does not
  /// support; kData and kNoInput as thrown by Adapter, merge_adapter() and read_prefix().
  LoadedModel(const ModelSource& source, const LoadOptions& options);

  const Stage& stage() const { return stage_; }
  Stream& stream() { return stream_; }
  /// Prefix of the adapter; null: it has none.
  const KvPrefix* prefix() const { return prefix_ ? &*prefix_ : nullptr; }

 private:
  void read_adapter(const ModelSource& source, const LoadOptions&);
  void report(std::string_view type, double seconds) const;

  std::unique_ptr<Backend> own_backend_;  // null: it is the caller's
  Stream stream_;
  ParamTable table_;
  Stage stage_;
  std::optional<Adapter> adapter_;
  std::optional<KvPrefix> prefix_;
  std::unique_ptr<TensorFile> merged_;  // the model's tensors with LoRA added
  std::optional<WeightStore> weights_;
  std::optional<ParamStore> params_;
};

}  // namespace megalith
