#include "libcore/config/tokenizer_config.h"

#include "libcore/base/error.h"
#include "libcore/io/cache/hf_cache.h"
#include "libcore/io/run/run_files.h"

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
    if (type.empty()) unreadable_ = error.what();  // if a type is given, its reader reports what is missing
  }
  if (type.empty()) type = "HuggingFaceTokenizer";
}

void TokenizerConfig::take(const TokenizerFiles& found) {
  // HuggingFaceTokenizer also accepts GPT-2's two files, as transformers does.
  const bool any = type.empty() || (type == "HuggingFaceTokenizer" && found.type == "GPT2BPETokenizer");
  if (any) type = found.type;
  if (type != found.type) return;
  vocab = found.vocab;
  merges = found.merges;
  model = found.model;
}

void TokenizerConfig::validate(Problems& problems) const {
  if (!unreadable_.empty()) problems.add(Opt{"tokenizer-model"}, ' ', unreadable_);
  if (type != "GPT2BPETokenizer") return;
  if (vocab.empty())
    problems.add(Opt{"tokenizer-type"}, " GPT2BPETokenizer needs ", Opt{"vocab-file"}, " FILE (vocab.json)");
  if (merges.empty())
    problems.add(Opt{"tokenizer-type"}, " GPT2BPETokenizer needs ", Opt{"merge-file"}, " FILE (merges.txt)");
}

TokenizerFiles tokenizer_files(const TokenizerConfig& config, int64_t vocab_size) {
  return {.type = config.type,
          .vocab = config.vocab,
          .merges = config.merges,
          .model = config.model,
          .vocab_size = static_cast<int>(vocab_size),
          .hf_special_tokens = config.hf_special_tokens,
          .tiktoken_pattern = config.tiktoken_pattern,
          .tiktoken_special_tokens = config.tiktoken_special_tokens,
          .special_tokens = config.special_tokens,
          .eod = config.eod};
}

TokenizerFiles take_tokenizer(const TokenizerFiles& own, TokenizerConfig& config) {
  config.type = own.type;
  config.vocab = own.vocab;
  config.merges = own.merges;
  config.model = own.model;
  if (config.eod.empty()) config.eod = own.eod;
  if (config.special_tokens.empty()) config.special_tokens = own.special_tokens;
  return tokenizer_files(config, own.vocab_size);
}

void reads_tokenizer(RunFiles& files, const TokenizerConfig& config) {
  files.reads("--vocab-file", config.vocab);
  files.reads("--merge-file", config.merges);
  files.reads("--tokenizer-model", config.model);
}

template std::vector<Field> fields_of<TokenizerConfig>(TokenizerConfig&);

}  // namespace megalith
