#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "libcore/convert/sources/hf_config.h"
#include "libcore/json/json.h"

namespace megalith {

/// --eod-token of the run whose options `args` are, as our checkpoints and the Megatron ones that we write
/// keep it; empty: the tokenizer's files say what ends a document.
std::string eod_of(const Json& args);

/// The files of a tokenizer's folder, name to contents, which are copied into a model of `vocab_size` ids.
/// kData with the file, and its member or line, for what no reader would take: JSON of another form than a
/// tokenizer's, ids beyond the vocabulary or of two tokens, merges of what is no token, GPT-2's files and a
/// tokenizer.model that this library cannot read, files that contradict each other or, in a checkpoint of
/// ours, are not those that were saved (text/saved_tokenizer.h), and a link to somewhere else.
std::map<std::string, std::string> tokenizer_files_of(const std::string& folder, int64_t vocab_size);

/// What a Hugging Face folder holds of a tokenizer.
struct HfTokenizerFiles {
  std::map<std::string, std::string> files;  // name to contents
  SpecialIds ids;
};
/// The files of `folder` as they are, and, of a byte-level BPE, those that transformers wants beside them
/// (tokenizer.json from vocab.json and merges.txt, or the reverse; tokenizer_config.json;
/// special_tokens_map.json). Ids come from the tokenizer's own names for them, else "<|endoftext|>"; `eod`,
/// where it is not empty, is the token that ends a document in place of theirs, and the files say so. kData
/// as above, for ids of a byte-level BPE that leave a number out, and for an `eod` that is no token.
HfTokenizerFiles hf_tokenizer_files(const std::string& folder, const ModelConfig& config,
                                    const std::string& eod = {});

}  // namespace megalith
