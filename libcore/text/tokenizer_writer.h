#pragma once

#include <string>

#include "libcore/text/bpe_trainer.h"

namespace megalith {

/// Writes a trained tokenizer as a folder that appears whole: vocab.json and merges.txt (GPT2BPETokenizer),
/// tokenizer.json (the bytes that Hugging Face tokenizers writes), tokenizer_config.json and
/// special_tokens_map.json (transformers). The first special token ends a document. A folder that holds
/// nothing else is replaced. Throws kUsage when it holds other files, kIo.
void write_tokenizer(const std::string& folder, const TrainedBpe& trained);

}  // namespace megalith
