#pragma once

#include <map>
#include <string>

#include "libcore/text/bpe/train/bpe_trainer.h"

namespace megalith {

/// The files of a trained tokenizer, by name: vocab.json and merges.txt (GPT2BPETokenizer), tokenizer.json
/// (the same bytes as Hugging Face tokenizers writes), tokenizer_config.json and special_tokens_map.json
/// (transformers). The first special token ends a document.
std::map<std::string, std::string> tokenizer_texts(const TrainedBpe& trained);

/// Writes the files of tokenizer_texts() to a folder that appears only when complete. An existing folder that
/// holds nothing else is replaced. Throws kUsage if the folder holds other files; kIo.
void write_tokenizer(const std::string& folder, const TrainedBpe& trained);

}  // namespace megalith
