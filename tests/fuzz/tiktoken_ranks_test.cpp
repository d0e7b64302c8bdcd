#include "libcore/text/formats/tiktoken_files.h"
#include "tests/fuzz/fuzz.h"

MEGALITH_FUZZ_TARGET(tiktoken_ranks) {
  using namespace megalith;
  const ByteLevelTokenizer tokenizer(
      read_tiktoken(fuzz::file_of(bytes), {.pattern = "v2", .special_tokens = 7, .vocab_size = 263}));
  std::vector<int32_t> ids;
  tokenizer.encode("The Harbour's </s> 12\n", ids);
  tokenizer.decode(ids);
}
