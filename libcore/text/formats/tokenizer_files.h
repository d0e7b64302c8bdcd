#pragma once

#include "libcore/config/tokenizer_config.h"
#include "libcore/io/run/run_files.h"
#include "libcore/text/formats/make_tokenizer.h"

namespace megalith {

/// The tokenizer that the options name; `vocab_size` is --vocab-size (0: not given).
inline TokenizerFiles tokenizer_files(const TokenizerConfig& config, int64_t vocab_size) {
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

/// Names a model's own tokenizer in the options as if its files had been given, so that everything after
/// reads options alone; what these say beside the files stays. Returns that tokenizer.
inline TokenizerFiles take_tokenizer(const TokenizerFiles& own, TokenizerConfig& config) {
  config.type = own.type;
  config.vocab = own.vocab;
  config.merges = own.merges;
  config.model = own.model;
  if (config.eod.empty()) config.eod = own.eod;
  if (config.special_tokens.empty()) config.special_tokens = own.special_tokens;
  return tokenizer_files(config, own.vocab_size);
}

/// The files that make_tokenizer() will read.
inline void reads_tokenizer(RunFiles& files, const TokenizerConfig& config) {
  files.reads("--vocab-file", config.vocab);
  files.reads("--merge-file", config.merges);
  files.reads("--tokenizer-model", config.model);
}

}  // namespace megalith
