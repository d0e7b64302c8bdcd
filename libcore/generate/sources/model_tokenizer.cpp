#include "libcore/generate/sources/model_tokenizer.h"

#include "libcore/base/error.h"

namespace megalith {

std::unique_ptr<Tokenizer> model_tokenizer(const ModelSource& source, bool special_tokens) {
  if (source.tokenizer().type.empty())
    fail(ErrorKind::kUsage, source.path(),
         ": the model came without a tokenizer, so text cannot be read or "
         "written; convert or train it with one");
  TokenizerFiles files = source.tokenizer();
  files.hf_special_tokens = special_tokens;
  return make_tokenizer(files);
}

void check_ids(std::span<const int32_t> ids, int64_t vocabulary, std::string_view tokenizer) {
  for (const int32_t id : ids)
    if (id >= vocabulary)
      fail(ErrorKind::kData, tokenizer, " gives id ", id, ", but the model's vocabulary has ", vocabulary,
           "; the tokenizer belongs to another model");
}

}  // namespace megalith
