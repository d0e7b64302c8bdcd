#pragma once

#include <cstdint>
#include <string>

#include "libcore/config/fields.h"
#include "libcore/convert/model_source.h"

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

/// Writes a Hugging Face folder: config.json, generation_config.json, weights in files of at most `max_shard`
/// bytes (one tensor is never divided), the tokenizer's files from `tokenizer_folder` (empty: none) and
/// README.md. An earlier export is replaced; kUsage when the folder holds anything else. At most two copies
/// of the largest tensor stand in memory.
void export_hf(const ModelSource& source, const std::string& tokenizer_folder, const std::string& output,
               uint64_t max_shard);

/// Writes the weights as ROOT/release with its tracker, for megalith-pretrain --load. kUsage when the folder
/// holds checkpoints already.
void export_checkpoint(const ModelSource& source, const std::string& tokenizer_folder,
                       const std::string& root);

}  // namespace megalith
