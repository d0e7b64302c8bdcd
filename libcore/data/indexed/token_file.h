#pragma once

#include <cstdint>
#include <string>

namespace megalith {

/// The id of GPT-2's <|endoftext|>, with which nanoGPT's prepare.py ends a document.
inline constexpr uint16_t kGpt2End = 50256;

/// What a file of ids became.
struct TokenFileCounts {
  int64_t tokens = 0, documents = 0;
};

/// Makes the dataset `prefix` from a file of ids alone, two bytes each in little-endian order, as nanoGPT's
/// prepare.py writes train.bin and val.bin. A document ends after each `end`; what follows the last one is
/// another document. kData if the file is empty or has an odd number of bytes, or if a document has 2^31
/// tokens or more; kNoInput, kIo.
TokenFileCounts index_token_file(const std::string& path, const std::string& prefix, uint16_t end);

/// The prefix of that dataset: the path without .bin, then "_document".
std::string prefix_of_token_file(const std::string& path);

}  // namespace megalith
