#include "libcore/text/formats/hf_json.h"
#include "tests/fuzz/fuzz.h"

MEGALITH_FUZZ_TARGET(tokenizer_json) {
  using namespace megalith;
  const auto tokenizer = read_hf_tokenizer(fuzz::file_of(bytes, "tokenizer.json"));
  for (const char* text :
       {"", " ", "The harbour's b\u00e9\u0301 12345  \n\n \u65e5\u672c <s>x</s> \u2581\u2581ab!"}) {
    std::vector<int32_t> ids;
    tokenizer->encode(text, ids);
    tokenizer->decode(ids);
  }
  for (int32_t id : {0, tokenizer->vocab_size() / 2, tokenizer->vocab_size() - 1})
    if (id >= 0 && id < tokenizer->vocab_size()) tokenizer->decode(std::vector<int32_t>{id, id});
  tokenizer->hash();
}
