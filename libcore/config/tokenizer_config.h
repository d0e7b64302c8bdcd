#pragma once

#include <string>
#include <vector>

#include "libcore/options/fields.h"
#include "libcore/text/tokenizer_files.h"

namespace megalith {

class RunFiles;

/// The tokenizer and its files. The vocabulary's size belongs to ModelConfig (or, for preprocessing, to the
/// app's own field).
struct TokenizerConfig {
  std::string type, vocab, merges, model, eod;
  bool hf_special_tokens = true;
  // not an option: --vocab-size is the size of a model, which may have more ids than its tokenizer
  bool of_model = false;
  std::string tiktoken_pattern = "v2";
  int tiktoken_special_tokens = 1000;
  std::vector<std::string> special_tokens;

  template <class V>
  void fields(V&& v) {
    v("tokenizer-type", type,
      "Kind of tokenizer: GPT2BPETokenizer, HuggingFaceTokenizer, TikTokenizer, Llama2Tokenizer, ...",
      default_text("by the files given"),
      offers({"GPT2BPETokenizer", "GPTSentencePieceTokenizer", "HuggingFaceTokenizer", "Llama2Tokenizer",
              "NullTokenizer", "TikTokenizer"}));
    v("vocab-file", vocab, "vocab.json of a GPT-2 tokenizer.", metavar("FILE"), alias({"vocab"}));
    v("merge-file", merges, "merges.txt of a GPT-2 tokenizer.", metavar("FILE"), alias({"merges-file"}));
    v("tokenizer-model", model,
      "File or folder of a tokenizer, detected by content: tokenizer.json, vocab.json with merges.txt, "
      "SentencePiece or tiktoken; or the id of a model that was downloaded from the Hugging Face hub before.",
      metavar("FILE"), alias({"tokenizer-name-or-path"}));
    v("eod-token", eod, "Token that ends a document, for a GPT-2 tokenizer or a tokenizer.json.",
      metavar("TOKEN"), default_text("as the files say, else <|endoftext|>"));
    v("tokenizer-hf-include-special-tokens", hf_special_tokens,
      "HuggingFaceTokenizer: include the tokens that its post-processor puts around a text, such as <s>.",
      opposite({"tokenizer-hf-no-include-special-tokens"}));
    v("tiktoken-pattern", tiktoken_pattern, "TikTokenizer: which of Megatron's two patterns splits a text.",
      one_of({"v1", "v2"}));
    v("tiktoken-num-special-tokens", tiktoken_special_tokens,
      "TikTokenizer: number of special tokens, whose ids come before those of the file.", at_least(7));
    v("tokenizer-special-tokens", special_tokens,
      "Special tokens in addition to those of the files; TikTokenizer: the first ones, instead of <unk> <s> "
      "</s> ...",
      metavar("TOKEN"), alias({"tiktoken-special-tokens"}));
  }
  void finish();  // determines what was not given: the type, and the files in a folder or of a hub id
  void validate(Problems&) const;

 private:
  void take(const TokenizerFiles&);
  std::string unreadable_;  // why the type could not be determined
};

/// The tokenizer that the options name. `vocab_size` is the value of --vocab-size (0: not given).
TokenizerFiles tokenizer_files(const TokenizerConfig&, int64_t vocab_size);

/// Sets the options to the tokenizer `own` of a model as if its files had been given, so that later code
/// needs only the options. Keeps all settings other than the files. Returns that tokenizer.
TokenizerFiles take_tokenizer(const TokenizerFiles& own, TokenizerConfig&);

/// Adds the files that make_tokenizer() will read to the files of the run.
void reads_tokenizer(RunFiles&, const TokenizerConfig&);

extern template std::vector<Field> fields_of<TokenizerConfig>(TokenizerConfig&);

}  // namespace megalith
