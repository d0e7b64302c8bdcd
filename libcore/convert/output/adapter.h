#pragma once

#include <memory>
#include <string>

#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/config/model_config.h"
#include "libcore/convert/output/output.h"
#include "libcore/json/json.h"

namespace megalith {

inline constexpr const char* kPeftLora = "LORA";
inline constexpr const char* kPeftPrefix = "PREFIX_TUNING";

/// Whether `path` is a folder written by PEFT (with an adapter_config.json).
bool is_adapter(const std::string& path);

/// An adapter's kind according to its adapter_config.json, before anything is checked.
struct AdapterKind {
  std::string name;       // kPeftLora, kPeftPrefix or another one; empty: not readable
  int64_t positions = 0;  // of a prefix; 0: not given
};
/// The kind of the adapter in a folder. Its name is empty if the folder is no adapter or cannot be read: the
/// class Adapter then reports what is wrong.
AdapterKind adapter_kind(const std::string& path);

/// A PEFT adapter, adapter_config.json and adapter_model.safetensors: LoRA or prefix tuning.
class Adapter {
 public:
  /// Reads and checks everything except the tensors' bytes. Unknown kinds and settings are kData with their
  /// names, and so are tensors that are missing, unexpected or of another size than the configuration says.
  /// kNoInput.
  explicit Adapter(const std::string& folder);

  const std::string& path() const { return folder_; }
  const std::string& kind() const { return kind_; }  // kPeftLora, kPeftPrefix
  const Json& config() const { return config_; }
  const TensorFile& tensors() const { return *tensors_; }

  /// LoRA's matrices for a module ("transformer.h.0.attn.c_attn"): `a` [rank, in], `b` [out, rank]. The
  /// weight increases by scale * b a.
  struct Module {
    std::string name, a, b;
    int64_t rank, in, out;
    double alpha, scale;  // scale: alpha / rank, with rsLoRA alpha / sqrt(rank)
  };
  const std::vector<Module>& modules() const { return modules_; }

 private:
  void find_modules();
  void check_prefix() const;
  void set_scale(Module&) const;

  std::string folder_, kind_;
  Json config_;
  std::unique_ptr<TensorFile> tensors_;
  std::vector<Module> modules_;  // of LoRA
};

/// `base` (our names) with a LoRA adapter added to its weights: W + scale * B A, computed in fp32 and rounded
/// once, block by block as it is read. `base` and `adapter` must outlive the result. kData if the adapter has
/// modules that are not in the model or have other sizes there; kUsage for an adapter that cannot be merged
/// (prefix tuning).
std::unique_ptr<TensorFile> merge_adapter(const TensorFile& base, const ModelConfig& config,
                                          const Adapter& adapter);

/// Writes the adapter as a PEFT folder: adapter_config.json, adapter_model.safetensors, README.md. kUsage if
/// the folder already exists, unless `overwrite` lets it replace one that a conversion wrote.
OutputPlan plan_adapter(const Adapter& adapter, std::optional<DType> dtype);
void export_adapter(const Adapter& adapter, const std::string& output, std::optional<DType> dtype,
                    bool overwrite = false);

}  // namespace megalith
