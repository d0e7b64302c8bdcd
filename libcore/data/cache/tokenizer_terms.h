#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/json/json.h"
#include "libcore/options/fields.h"

namespace megalith {

/// The version of Megatron whose names a cache gets. The tokenizer's class and arguments are part of them.
enum class MegatronCore { k0161, kHead };
inline std::vector<EnumName<MegatronCore>> enum_names(MegatronCore) {
  return {{"0.16.1", MegatronCore::k0161}, {"head", MegatronCore::kHead}};
}

/// Megatron-LM's options of a tokenizer, as they are given to a job, with its defaults. Files are not read:
/// only the words are part of a name.
struct TokenizerTerms {
  std::string type, model, vocab, merges, metadata, tiktoken_pattern, like;
  std::optional<int64_t> vocab_size;
  std::optional<std::string> chat_template;
  std::vector<std::string> special_tokens;
  int64_t tiktoken_special_tokens = 1000, null_pad = -1;
  std::optional<int64_t> null_eod;
  bool sentencepiece_legacy = false, ignore_extra_whitespaces = true, trust_remote_code = false,
       gigatoken = false;
  bool hf_use_fast = false, hf_special_tokens = false;        // of 0.16.1
  bool hf_no_use_fast = false, hf_no_special_tokens = false;  // of head
  MegatronCore core = MegatronCore::k0161;

  template <class V>
  void fields(V&& v) {
    v("megatron-core", core,
      "The version that will read the cache: 0.16.1, or head (Megatron-LM d98e8a64). The names contain the "
      "tokenizer's class and arguments, which differ.");
    v("like", like,
      "A description.txt that a job of another version wrote; the tokenizer's part of the names is taken "
      "from "
      "it.",
      metavar("FILE"));
    v("tokenizer-type", type, "As of the job.");
    v("tokenizer-model", model, "As of the job.", metavar("FILE"));
    v("vocab-file", vocab, "As of the job.", metavar("FILE"));
    v("merge-file", merges, "As of the job.", metavar("FILE"));
    v("vocab-size", vocab_size, "As of the job.");
    v("tokenizer-metadata", metadata, "Needs --like.", metavar("FILE"));
    v("tokenizer-special-tokens", special_tokens, "As of the job.", metavar("TOKEN"),
      alias({"tiktoken-special-tokens"}));
    v("tiktoken-pattern", tiktoken_pattern, "As of the job.");
    v("tiktoken-num-special-tokens", tiktoken_special_tokens, "As of the job.");
    v("tokenizer-sentencepiece-legacy", sentencepiece_legacy, "As of the job.");
    v("tokenizer-sentencepiece-ignore-extra-whitespaces", ignore_extra_whitespaces, "As of the job; of head.",
      opposite({"disable-tokenizer-sentencepiece-ignore-extra-whitespaces"}));
    v("tokenizer-hf-use-fast", hf_use_fast, "As of the job; of 0.16.1.");
    v("tokenizer-hf-include-special-tokens", hf_special_tokens, "As of the job; of 0.16.1.");
    v("tokenizer-hf-no-use-fast", hf_no_use_fast, "As of the job; of head.");
    v("tokenizer-hf-no-include-special-tokens", hf_no_special_tokens, "As of the job; of head.");
    v("trust-remote-code", trust_remote_code, "As of the job.");
    v("chat-template", chat_template, "As of the job; of head.");
    v("use-gigatoken", gigatoken, "As of the job; of head.");
    v("null-tokenizer-eod-id", null_eod, "As of the job; of head.");
    v("null-tokenizer-pad-id", null_pad, "As of the job; of head.");
  }
  void validate(Problems&) const;

 private:
  /// Refuses options that a job of this version cannot have, so that the names would be those of no job.
  void find_of_another_version(Problems&) const;
};

/// What Megatron's build_tokenizer makes of these options: the tokenizer's unique_identifiers; with --like,
/// those of the description. kNoInput, kData.
Json tokenizer_identifiers(const TokenizerTerms& terms);

}  // namespace megalith
