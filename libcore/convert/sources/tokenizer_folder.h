#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "libcore/convert/sources/hf_config.h"
#include "libcore/json/json.h"
#include "libcore/text/tokenizer_files.h"

namespace megalith {

/// The --eod-token among the options `args` of a run. Our checkpoints keep it, and so do the Megatron
/// checkpoints that we write. Empty: the tokenizer's files say what ends a document.
std::string eod_of(const Json& args);

/// The files of a tokenizer's folder, name to contents, to be copied into a model of `vocab_size` ids. kData,
/// with the file and its member or line, for anything that no reader would accept: JSON that is not a
/// tokenizer's, ids beyond the vocabulary or of two tokens, merges of unknown tokens, GPT-2's files and a
/// tokenizer.model that this library cannot read, files that contradict each other or, in a checkpoint of
/// ours, were changed since they were saved (text/saved_tokenizer.h), and a link to a file elsewhere.
std::map<std::string, std::string> tokenizer_files_of(const TokenizerFolder& folder, int64_t vocab_size);

/// The tokenizer of a Hugging Face folder.
struct HfTokenizerFiles {
  std::map<std::string, std::string> files;  // name to contents
  SpecialIds ids;
};
/// The unchanged files of `folder` and, for a byte-level BPE, the other files that transformers needs
/// (tokenizer.json from vocab.json and merges.txt, or the reverse; tokenizer_config.json;
/// special_tokens_map.json). Special ids come from the tokenizer's own names for them, else from
/// "<|endoftext|>". If `eod` is not empty, this token ends a document instead, and the returned files say so.
/// kData as for tokenizer_files_of(), for a byte-level BPE whose ids leave out a number, and for an `eod`
/// that is not a token.
HfTokenizerFiles hf_tokenizer_files(const TokenizerFolder& folder, const ModelConfig& config,
                                    const std::string& eod = {});

}  // namespace megalith
