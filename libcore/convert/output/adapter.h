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

/// The kind of an adapter, as its adapter_config.json says it; nothing is checked yet.
struct AdapterKind {
  std::string name;       // kPeftLora, kPeftPrefix or another one; empty if it cannot be read
  int64_t positions = 0;  // number of positions of a prefix; 0 if not given
};
/// The kind of the adapter in a folder. Its name is empty if the folder is not an adapter or cannot be read.
/// The class Adapter then reports the reason.
AdapterKind adapter_kind(const std::string& path);

/// A PEFT adapter for LoRA or prefix tuning: adapter_config.json and adapter_model.safetensors.
class Adapter {
 public:
  /// Reads and checks everything except the tensors' bytes. Throws kData, with the name, for a kind or
  /// setting that is not supported, and for a tensor that is missing, unexpected or of another size than the
  /// configuration says. kNoInput.
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
    double alpha, scale;  // scale: alpha / rank; with rsLoRA, alpha / sqrt(rank)
  };
  const std::vector<Module>& modules() const { return modules_; }

 private:
  void find_modules();
  void check_prefix() const;
  void set_scale(Module&) const;

  std::string folder_, kind_;
  Json config_;
  std::unique_ptr<TensorFile> tensors_;
  std::vector<Module> modules_;  // empty for a prefix
};

/// `base` (with our names), with a LoRA adapter added to its weights: W + scale * B A, computed in fp32 and
/// rounded once, block by block as it is read. `base` and `adapter` must outlive the result. Throws kData if
/// the model lacks one of the adapter's modules or has it in another size; kUsage if the adapter cannot be
/// merged (prefix tuning).
std::unique_ptr<TensorFile> merge_adapter(const TensorFile& base, const ModelConfig& config,
                                          const Adapter& adapter);

/// Writes the adapter as a PEFT folder: adapter_config.json, adapter_model.safetensors, README.md. Throws
/// kUsage if the folder already exists. With `overwrite`, throws only if it holds something that no
/// conversion writes.
OutputPlan plan_adapter(const Adapter& adapter, std::optional<DType> dtype);
void export_adapter(const Adapter& adapter, const std::string& output, std::optional<DType> dtype,
                    bool overwrite = false);

}  // namespace megalith
