#include "libcore/config/tokenizer_config.h"

namespace megalith {

void TokenizerConfig::finish() {
  if (!type.empty()) return;
  if (!vocab.empty() || !merges.empty())
    type = "GPT2BPETokenizer";
  else if (!model.empty())
    type = "HuggingFaceTokenizer";
}

void TokenizerConfig::validate(Problems& problems) const {
  if (type != "GPT2BPETokenizer") return;
  if (vocab.empty()) problems.add("--tokenizer-type GPT2BPETokenizer needs --vocab-file FILE (vocab.json)");
  if (merges.empty()) problems.add("--tokenizer-type GPT2BPETokenizer needs --merge-file FILE (merges.txt)");
}

}  // namespace megalith
