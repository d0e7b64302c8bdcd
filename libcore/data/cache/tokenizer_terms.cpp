#include "libcore/data/cache/tokenizer_terms.h"

#include <algorithm>
#include <span>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/cache/python_text.h"

namespace megalith {
namespace {

const std::vector<std::string> kSentencePiece = {"SentencePieceTokenizer", "GPTSentencePieceTokenizer",
                                                 "Llama2Tokenizer"};
const std::vector<std::string> kTypes = {
    "GPT2BPETokenizer", "GPTSentencePieceTokenizer", "HuggingFaceTokenizer", "Llama2Tokenizer",
    "NullTokenizer",    "SentencePieceTokenizer",    "TikTokenizer"};

bool is_among(const std::string& word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Python's str() of the arguments.
std::string text_of(bool value) {
  return value ? "True" : "False";
}
std::string text_of(const std::string& value) {
  return value.empty() ? "None" : value;
}

/// The tokenizer's arguments, in the order in which build_tokenizer sets them.
class Arguments {
 public:
  Arguments(const TokenizerTerms& terms, Json& out)
      : terms_(terms), head_(terms.core == MegatronCore::kHead), out_(out) {}

  void add() {
    if (terms_.type == "GPT2BPETokenizer") return add_gpt2();
    if (is_among(terms_.type, kSentencePiece)) return add_sentencepiece();
    if (terms_.type == "TikTokenizer") return add_tiktoken();
    if (terms_.type == "HuggingFaceTokenizer") return add_hugging_face();
    add_null();
  }

 private:
  void set(const char* name, const std::string& text) { out_.set(name, text); }
  void set_chat_template() {
    if (head_) set("chat_template", terms_.chat_template.value_or("None"));
  }
  std::string tokens(const char* none) const {
    return terms_.special_tokens.empty() ? none : python_repr(std::span(terms_.special_tokens));
  }
  void set_fast() {
    set("use_fast", text_of(head_ ? !terms_.hf_no_use_fast : terms_.hf_use_fast));
    set("trust_remote_code", text_of(terms_.trust_remote_code));
    set("include_special_tokens", text_of(head_ ? !terms_.hf_no_special_tokens : terms_.hf_special_tokens));
    if (head_) set("use_gigatoken", text_of(terms_.gigatoken));
  }
  void set_files() {
    set("vocab_file", text_of(terms_.vocab));
    set("merges_file", text_of(terms_.merges));
  }

  void add_gpt2() {
    set("additional_special_tokens", tokens("[]"));
    set_files();
    set_fast();
  }
  void add_sentencepiece() {
    set_chat_template();
    if (head_) set("ignore_extra_whitespaces", text_of(terms_.ignore_extra_whitespaces));
    set("legacy", text_of(terms_.sentencepiece_legacy));
    set("special_tokens", tokens("None"));
  }
  void add_tiktoken() {
    set_chat_template();
    if (!terms_.tiktoken_pattern.empty()) set("pattern", terms_.tiktoken_pattern);
    if (terms_.vocab_size.value_or(0) != 0) set("vocab_size", concat(*terms_.vocab_size));
    set("num_special_tokens", concat(terms_.tiktoken_special_tokens));
    set("special_tokens", tokens("None"));
  }
  void add_hugging_face() {
    set_chat_template();
    set_files();
    set("additional_special_tokens", tokens("[]"));
    set_fast();
  }
  void add_null() {
    if (terms_.vocab_size.value_or(0) != 0) set("vocab_size", concat(*terms_.vocab_size));
    if (!head_) return;
    if (terms_.null_eod) set("eod_id", concat(*terms_.null_eod));
    set("pad_id", concat(terms_.null_pad));
  }

  const TokenizerTerms& terms_;
  const bool head_;
  Json& out_;
};

/// The "tokenizer" of a description, either of a dataset or of a blend, whose datasets all have it.
Json tokenizer_of_description(const std::string& path) {
  const Json description = Json::load(path);
  const Json* datasets = description.find("datasets");
  const Json* of = datasets && datasets->is_array() && !datasets->as_array().empty()
                       ? &datasets->as_array().front()
                       : &description;
  const Json* tokenizer = of->find("tokenizer");
  if (!tokenizer || !tokenizer->is_object())
    fail(ErrorKind::kData, path,
         ": has no member \"tokenizer\"; wanted a file ...-description.txt from the cache of a job of "
         "Megatron");
  return *tokenizer;
}

}  // namespace

void TokenizerTerms::find_of_another_version(Problems& problems) const {
  const std::pair<const char*, bool> of_head[] = {
      {"tokenizer-hf-no-use-fast", hf_no_use_fast},
      {"tokenizer-hf-no-include-special-tokens", hf_no_special_tokens},
      {"chat-template", chat_template.has_value()},
      {"use-gigatoken", gigatoken},
      {"null-tokenizer-eod-id", null_eod.has_value()},
      {"null-tokenizer-pad-id", null_pad != -1},
      {"no-tokenizer-sentencepiece-ignore-extra-whitespaces", !ignore_extra_whitespaces}};
  const std::pair<const char*, bool> of_0161[] = {{"tokenizer-hf-use-fast", hf_use_fast},
                                                  {"tokenizer-hf-include-special-tokens", hf_special_tokens}};
  const auto refuse = [&](std::span<const std::pair<const char*, bool>> options, const char* version,
                          const char* other) {
    for (const auto& [name, given] : options)
      if (given)
        problems.add(Opt{name}, " is no option of ", version, "; give ", Opt{"megatron-core"}, ' ', other,
                     ", or leave it out");
  };
  if (core == MegatronCore::kHead)
    refuse(of_0161, "head", "0.16.1");
  else
    refuse(of_head, "0.16.1", "head");
}

void TokenizerTerms::validate(Problems& problems) const {
  if (!like.empty()) return;
  find_of_another_version(problems);
  if (type.empty()) {
    problems.add(Opt{"tokenizer-type"}, " is missing; give the tokenizer's options of the job, or ",
                 Opt{"like"}, " with a description of it");
    return;
  }
  if (!is_among(type, kTypes))
    problems.add(Opt{"tokenizer-type"}, ' ', quote(type), " is not known; give ", Opt{"like"},
                 " with a description.txt of a job that has it, or one of ", join(kTypes, ", "));
  if (!metadata.empty())
    problems.add(Opt{"tokenizer-metadata"}, " decides the tokenizer's class; give ", Opt{"like"},
                 " with a description.txt of a job that has it");
  if (type == "NullTokenizer" && vocab_size.value_or(0) == 0)
    problems.add(Opt{"tokenizer-type"}, " NullTokenizer needs ", Opt{"vocab-size"});
}

Json tokenizer_identifiers(const TokenizerTerms& terms) {
  if (!terms.like.empty()) return tokenizer_of_description(terms.like);
  Json json = Json::object();
  json.set("class", terms.core == MegatronCore::kHead
                        ? "megatron.core.tokenizers.text.text_tokenizer.MegatronTokenizerText"
                        : "megatron.core.tokenizers.text.models.default_tokenizer.DefaultTokenizerText");
  const std::string& path = terms.type == "GPT2BPETokenizer" ? terms.type : terms.model;
  json.set("tokenizer_path", path.empty() || terms.type == "NullTokenizer" ? Json() : Json(path));
  Arguments(terms, json).add();
  return json;
}

}  // namespace megalith
