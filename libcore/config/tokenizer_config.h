#pragma once

#include <string>

#include "libcore/config/fields.h"

namespace megalith {

/// Which tokenizer, and its files. The vocabulary's size is ModelConfig's (or, for preprocessing, the app's
/// own field).
struct TokenizerConfig {
  std::string type, vocab, merges, model;

  template <class V>
  void fields(V&& v) {
    v("tokenizer-type", type, "Kind of tokenizer: GPT2BPETokenizer, HuggingFaceTokenizer, NullTokenizer, ...",
      default_text("by the files given"));
    v("vocab-file", vocab, "vocab.json of a GPT-2 tokenizer.", metavar("FILE"), alias({"vocab"}));
    v("merge-file", merges, "merges.txt of a GPT-2 tokenizer.", metavar("FILE"), alias({"merges-file"}));
    v("tokenizer-model", model,
      "tokenizer.json, or the folder that holds it, or a SentencePiece or tiktoken file.", metavar("FILE"),
      alias({"tokenizer-name-or-path"}));
  }
  void finish();  // fills the type when the files leave one choice
  void validate(Problems&) const;
};

}  // namespace megalith
