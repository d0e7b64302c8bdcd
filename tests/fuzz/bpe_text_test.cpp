#include "libcore/base/error.h"
#include "libcore/base/utf8.h"
#include "libcore/text/formats/hf_json.h"
#include "libcore/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"

/// Encodes texts with byte-level tokenizers. Decoding must give back the text, and encoding in parts must
/// equal encoding the whole.
MEGALITH_FUZZ_TARGET(bpe_text) {
  using namespace megalith;
  const auto read = [](const char* name) {
    return read_hf_tokenizer(concat(MEGALITH_SOURCE_DIR, "/tests/text/goldens/", name), {.around = false});
  };
  static const std::unique_ptr<Tokenizer> kTokenizers[] = {
      read("trained/tokenizer.json"), read("hf/llama3.json"), read("hf/o200k.json"),
      read("hf/deepseek-llm.json"), read("hf/deepseek-v3/tokenizer.json")};
  const std::string text = replace_invalid_utf8(bytes);
  for (const auto& tokenizer : kTokenizers) {
    std::vector<int32_t> ids, pieces;
    tokenizer->encode(text, ids);
    tokenizer->encode_in_parts(
        text, [&](std::span<const int32_t> some) { pieces.insert(pieces.end(), some.begin(), some.end()); });
    if (ids != pieces) fail(ErrorKind::kInternal, "ids differ in pieces");
    if (tokenizer->decode(ids) != text) fail(ErrorKind::kInternal, "decoded otherwise");
  }
}
