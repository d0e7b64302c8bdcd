#include "libcore/text/formats/gpt2_files.h"

#include <algorithm>

#include "tests/fuzz/fuzz.h"

/// Reads a tokenizer from vocab.json and merges.txt, which the input holds in this order with a NUL between
/// them.
MEGALITH_FUZZ_TARGET(gpt2_files) {
  using namespace megalith;
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  const char* const vocab = fuzz::file_of(bytes.substr(0, end), "vocab.json");
  const char* const merges = fuzz::file_of(bytes.substr(std::min(end + 1, bytes.size())), "merges.txt");
  const ByteLevelTokenizer tokenizer(read_gpt2_files(vocab, merges));
  std::vector<int32_t> ids;
  tokenizer.encode("The harbour's books <|endoftext|> \n", ids);
  tokenizer.decode(ids);
}
