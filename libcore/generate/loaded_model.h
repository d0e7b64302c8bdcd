#pragma once

#include <memory>
#include <optional>
#include <string>

#include "libcore/convert/output/adapter.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/generate/generate.h"
#include "libcore/generate/weight_store.h"
#include "libcore/model/param_store.h"
#include "libcore/ops/backend/backend.h"

namespace megalith {

/// How a model is to be loaded.
struct LoadOptions {
  std::string adapter = {};  // a folder of peft; empty: the model as it is
  std::string device = "cpu";
  bool int8 = false;        // see WeightOptions; on the CPU alone
  bool bf16_cache = false;  // whether keys and values shall be kept so; on the CPU alone
};

/// A whole model in memory, ready to generate. The source must outlive it.
class LoadedModel {
 public:
  /// Loads weights and adapter, and says on the log what that took. kUsage for options that are not for the
  /// device; kData and kNoInput as Adapter, merge_adapter() and read_prefix() say.
  LoadedModel(const ModelSource& source, const LoadOptions& options);

  const Stage& stage() const { return stage_; }
  Stream& stream() { return stream_; }
  const KvPrefix* prefix() const { return prefix_ ? &*prefix_ : nullptr; }  // of an adapter; null: none

 private:
  void read_adapter(const ModelSource& source, const std::string& path);
  void report(const ModelSource& source, bool int8, double seconds) const;

  std::unique_ptr<Backend> backend_;
  Stream stream_;
  ParamTable table_;
  Stage stage_;
  std::optional<Adapter> adapter_;
  std::optional<KvPrefix> prefix_;
  std::unique_ptr<TensorFile> merged_;  // the model with LoRA added
  std::optional<WeightStore> weights_;
  std::optional<ParamStore> params_;
};

}  // namespace megalith
