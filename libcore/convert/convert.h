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
  int64_t vocab_size = 0;
  int heads = 0;
  bool crc = true;

  template <class V>
  void fields(V&& v) {
    v("source", source,
      "Checkpoint of Megalith or Megatron-LM (the folder that training saved into, one iteration's, one "
      "rank's, or "
      "a .pt file), or Hugging Face folder.",
      positional(), required(), metavar("PATH"));
    v("output", output, "Folder to write.", required(), metavar("DIR"));
    v("to", to, "What to write: hf (a Hugging Face folder) or megalith (a checkpoint of weights).",
      one_of({"hf", "megalith"}));
    v("max-shard-size", max_shard_size,
      "Greatest size of one weights file of a Hugging Face folder: 500MB, 5GB, 4GiB.");
    v("tokenizer", tokenizer, "Folder with the tokenizer's files, in place of the model's own.",
      metavar("DIR"), alias({"tokenizer-model"}));
    v("vocab-size", vocab_size,
      "Ids of the tokenizer, without padding, of a Megatron checkpoint converted without --tokenizer.",
      between(0, 2147483647), default_text("from the tokenizer"));
    v("num-attention-heads", heads, "Attention heads of an old Megatron release that was saved without args.",
      at_least(0), default_text("from the checkpoint"));
    v("crc", crc, "Compare the checksums in torch's files when they are read.");
  }
  void validate(Problems&) const;
  SourceOptions source_options() const;
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
