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
      "The version that will read the cache: 0.16.1, or head (Megatron-LM d98e8a64). The names of files "
      "depend on the tokenizer's class and arguments, which differ between the two.");
    v("like", like,
      "A description.txt that a job of another version wrote: gives the tokenizer's part of the names.",
      metavar("FILE"));
    v("tokenizer-type", type, "As in the job.");
    v("tokenizer-model", model, "As in the job.", metavar("FILE"));
    v("vocab-file", vocab, "As in the job.", metavar("FILE"));
    v("merge-file", merges, "As in the job.", metavar("FILE"));
    v("vocab-size", vocab_size, "As in the job.");
    v("tokenizer-metadata", metadata, "As in the job; only with --like.", metavar("FILE"));
    v("tokenizer-special-tokens", special_tokens, "As in the job.", metavar("TOKEN"),
      alias({"tiktoken-special-tokens"}));
    v("tiktoken-pattern", tiktoken_pattern, "As in the job.");
    v("tiktoken-num-special-tokens", tiktoken_special_tokens, "As in the job.");
    v("tokenizer-sentencepiece-legacy", sentencepiece_legacy, "As in the job.");
    v("tokenizer-sentencepiece-ignore-extra-whitespaces", ignore_extra_whitespaces,
      "As in the job; head only.", opposite({"disable-tokenizer-sentencepiece-ignore-extra-whitespaces"}));
    v("tokenizer-hf-use-fast", hf_use_fast, "As in the job; 0.16.1 only.");
    v("tokenizer-hf-include-special-tokens", hf_special_tokens, "As in the job; 0.16.1 only.");
    v("tokenizer-hf-no-use-fast", hf_no_use_fast, "As in the job; head only.");
    v("tokenizer-hf-no-include-special-tokens", hf_no_special_tokens, "As in the job; head only.");
    v("trust-remote-code", trust_remote_code, "As in the job.");
    v("chat-template", chat_template, "As in the job; head only.");
    v("use-gigatoken", gigatoken, "As in the job; head only.");
    v("null-tokenizer-eod-id", null_eod, "As in the job; head only.");
    v("null-tokenizer-pad-id", null_pad, "As in the job; head only.");
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
