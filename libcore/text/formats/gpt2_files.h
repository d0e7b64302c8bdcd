#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libcore/text/formats/byte_level_tokenizer.h"

namespace megalith {

/// Reads GPT-2's two files: vocab.json, {"token": id}, and merges.txt, one "left right" a line in order of
/// rank, lines that begin with "#version" ignored. "<|endoftext|>" must be in the vocabulary: it is the end
/// of a document and is found as text. Form and rules: docs/formats/tokenizer.md. Throws kNoInput, kData with
/// the file and line.
/// `special`: more special tokens, found as text, with the next free ids when they have none yet.
ByteLevelModel read_gpt2_files(const std::string& vocab, const std::string& merges,
                               const std::vector<std::string>& special = {});

/// The tokenizer of these files. Of large ones what was made of them is kept for later runs
/// (io/build_cache.h).
std::unique_ptr<ByteLevelTokenizer> make_gpt2_tokenizer(const std::string& vocab, const std::string& merges,
                                                        const std::vector<std::string>& special = {});

}  // namespace megalith
