#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "libcore/convert/sources/hf_config.h"
#include "libcore/text/formats/make_tokenizer.h"

namespace megalith {

/// The tokenizer whose files stand in `folder`, as find_tokenizer() (config/tokenizer_model.h) sees them; its
/// type is empty where there is none. `type` is the type that was trained with, where it is known.
TokenizerFiles tokenizer_in(const std::string& folder, const std::string& type = {});

/// Whether a file of this name belongs to a tokenizer, and those of a folder: name to contents.
bool is_tokenizer_file(std::string_view name);
std::map<std::string, std::string> tokenizer_files_of(const std::string& folder);

/// What a Hugging Face folder holds of a tokenizer.
struct HfTokenizerFiles {
  std::map<std::string, std::string> files;  // name to contents
  SpecialIds ids;
};
/// The files of `folder` as they are, and, of a byte-level BPE, those that transformers wants beside them
/// (tokenizer.json from vocab.json and merges.txt, or the reverse; tokenizer_config.json;
/// special_tokens_map.json). Ids come from the tokenizer's own names for them, else "<|endoftext|>". kData
/// for files that contradict each other, and when there are an id beyond the model's vocabulary.
HfTokenizerFiles hf_tokenizer_files(const std::string& folder, const ModelConfig& config);

}  // namespace megalith
