#include "libcore/config/tokenizer_config.h"

#include "libcore/base/error.h"
#include "libcore/config/tokenizer_model.h"
#include "libcore/io/cache/hf_cache.h"

namespace megalith {

void TokenizerConfig::finish() {
  unreadable_.clear();
  if (!vocab.empty() || !merges.empty()) {
    if (type.empty()) type = "GPT2BPETokenizer";
    return;
  }
  if (model.empty() || type == "NullTokenizer") return;
  model = path_or_snapshot(model);
  try {
    const auto found = recognize_tokenizer(model, type);
    if (found) take(*found);
  } catch (const Error& error) {
    if (type.empty()) unreadable_ = error.what();  // else the reader of that type says what it lacks
  }
  if (type.empty()) type = "HuggingFaceTokenizer";
}

void TokenizerConfig::take(const TokenizerModel& found) {
  // transformers makes a tokenizer of GPT-2's two files, too.
  const bool any = type.empty() || (type == "HuggingFaceTokenizer" && found.type == "GPT2BPETokenizer");
  if (any) type = found.type;
  if (type != found.type) return;
  vocab = found.vocab;
  merges = found.merges;
  model = found.model;
}

void TokenizerConfig::validate(Problems& problems) const {
  if (!unreadable_.empty()) problems.add("--tokenizer-model ", unreadable_);
  if (type != "GPT2BPETokenizer") return;
  if (vocab.empty()) problems.add("--tokenizer-type GPT2BPETokenizer needs --vocab-file FILE (vocab.json)");
  if (merges.empty()) problems.add("--tokenizer-type GPT2BPETokenizer needs --merge-file FILE (merges.txt)");
}

}  // namespace megalith
