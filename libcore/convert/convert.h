#pragma once

#include <cstdint>
#include <string>

#include "libcore/config/fields.h"
#include "libcore/convert/model_source.h"
#include "libcore/convert/output.h"

namespace megalith {

/// Options of megalith-convert.
struct ConvertConfig {
  std::string source, output, to = "hf";
  std::string max_shard_size = "5GB";
  std::string tokenizer;

  template <class V>
  void fields(V&& v) {
    v("source", source,
      "Checkpoint (the folder that training saved into, or one iteration's), or Hugging Face folder.",
      positional(), required(), metavar("DIR"));
    v("output", output, "Folder to write.", required(), metavar("DIR"));
    v("to", to, "What to write: hf (a Hugging Face folder) or megalith (a checkpoint of weights).",
      one_of({"hf", "megalith"}));
    v("max-shard-size", max_shard_size,
      "Greatest size of one weights file of a Hugging Face folder: 500MB, 5GB, 4GiB.");
    v("tokenizer-model", tokenizer, "Folder with the tokenizer's files, in place of the model's own.",
      metavar("DIR"));
  }
  void validate(Problems&) const;
};

/// Bytes of "500MB" (10^6), "4GiB" (2^30), "12345"; nothing when it is no size.
std::optional<uint64_t> parse_size(std::string_view text);

/// Does what the options say. The output appears complete or not at all.
void run_convert(const ConvertConfig& config);

/// What a target writes, and from what.
struct Conversion {
  const ModelSource& source;
  std::string tokenizer_folder = {};    // empty: none
  std::optional<DType> dtype = {};      // of all parameters; empty: each as it is stored
  const TensorFile* tensors = nullptr;  // under our names; null: the source's own
  const TensorFile& file() const { return tensors ? *tensors : source.tensors(); }
  DType dtype_of(const StoredTensor& tensor) const { return dtype.value_or(*tensor.dtype); }
  DType main_dtype() const { return dtype.value_or(source.dtype()); }
};

/// The files of a Hugging Face folder's weights, each of at most `max_shard` bytes (one tensor is never
/// divided).
OutputPlan plan_hf(const Conversion& conversion, uint64_t max_shard);
/// Writes the folder: config.json, generation_config.json, weights, the tokenizer's files and README.md. An
/// earlier export is replaced; kUsage when the folder holds anything else.
void export_hf(const Conversion& conversion, const std::string& output, uint64_t max_shard = UINT64_MAX);

/// Writes the weights as ROOT/release with its tracker, for megalith-pretrain --load. kUsage when the folder
/// holds checkpoints already. Holds one copy of the largest tensor.
OutputPlan plan_checkpoint(const Conversion& conversion);
void export_checkpoint(const Conversion& conversion, const std::string& root);

}  // namespace megalith
