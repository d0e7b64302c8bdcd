#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "libcore/convert/sources/hf_config.h"
#include "libcore/json/json.h"
#include "libcore/text/tokenizer_files.h"

namespace megalith {

/// The option --eod-token in `args`, the options of a run, which our checkpoints and the Megatron checkpoints
/// that we write keep. If it is empty, the tokenizer's files say what ends a document.
std::string eod_of(const Json& args);

/// The contents, by name, of the files in a tokenizer's folder, to be copied into a model of `vocab_size`
/// ids. Throws kData, with the file and its member or line, for anything that no reader would accept: JSON
/// that is not a tokenizer's; ids beyond the vocabulary or of two tokens; merges of unknown tokens; GPT-2's
/// files and a tokenizer.model that this library cannot read; files that contradict each other; files of our
/// checkpoint that were changed since they were saved (text/saved_tokenizer.h); and a link to a file
/// elsewhere.
std::map<std::string, std::string> tokenizer_files_of(const TokenizerFolder& folder, int64_t vocab_size);

/// The tokenizer of a Hugging Face folder.
struct HfTokenizerFiles {
  std::map<std::string, std::string> files;  // contents by name
  SpecialIds ids;
};
/// The files of `folder`, unchanged. For a byte-level BPE, also the other files that transformers needs
/// (tokenizer.json from vocab.json and merges.txt, or the reverse; tokenizer_config.json;
/// special_tokens_map.json). The special ids are those of the tokens that the tokenizer names for them, else
/// that of "<|endoftext|>". If `eod` is not empty, this token ends a document instead, and the returned files
/// say so. Throws kData as tokenizer_files_of() does, for a byte-level BPE that skips an id, and for an `eod`
/// that is not a token.
HfTokenizerFiles hf_tokenizer_files(const TokenizerFolder& folder, const ModelConfig& config,
                                    const std::string& eod = {});

}  // namespace megalith
