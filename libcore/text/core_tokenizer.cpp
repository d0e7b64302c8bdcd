#include "libcore/text/core_tokenizer.h"

#include "libcore/base/error.h"

namespace megalith {

void CoreTokenizer::fail_without_end(const std::string& name) {
  fail(ErrorKind::kData, name,
       ": the tokenizer's files name no end-of-document token; wanted \"eos_token\" in ",
       "tokenizer_config.json, or a token \"<|endoftext|>\"; name it with --eod-token TEXT");
}

}  // namespace megalith
