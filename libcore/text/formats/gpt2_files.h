#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libcore/text/formats/byte_level_tokenizer.h"

namespace megalith {

struct Gpt2Settings {
  /// Special tokens in addition to those of the files, found as text. Those that have no ids yet get the next
  /// free ones.
  std::vector<std::string> special = {};
  std::string eod = {};  // the token that ends a document; empty: "<|endoftext|>"
};

/// Reads GPT-2's two files: vocab.json, {"token": id}, and merges.txt, one "left right" a line in order of
/// rank; lines that begin with "#version" are ignored. The token that ends a document must be in the
/// vocabulary and is found as text. Format and rules: docs/formats/tokenizer.md. Throws kNoInput; kData with
/// the file and line.
ByteLevelModel read_gpt2_files(const std::string& vocab, const std::string& merges, const Gpt2Settings& = {});

/// The tokenizer of these files. The tables computed from large files are cached (io/cache/build_cache.h), so
/// that later runs start at once.
std::unique_ptr<ByteLevelTokenizer> make_gpt2_tokenizer(const std::string& vocab, const std::string& merges,
                                                        const Gpt2Settings& = {});

}  // namespace megalith
