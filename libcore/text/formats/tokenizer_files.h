#pragma once

#include "libcore/config/tokenizer_config.h"
#include "libcore/io/run_files.h"
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

/// Names `files` in the options, as if they had been given.
inline void take_tokenizer(const TokenizerFiles& files, TokenizerConfig& config) {
  config.type = files.type;
  config.vocab = files.vocab;
  config.merges = files.merges;
  config.model = files.model;
  config.hf_special_tokens = files.hf_special_tokens;
  config.special_tokens = files.special_tokens;
}

/// The files that make_tokenizer() will read.
inline void reads_tokenizer(RunFiles& files, const TokenizerConfig& config) {
  files.reads("--vocab-file", config.vocab);
  files.reads("--merge-file", config.merges);
  files.reads("--tokenizer-model", config.model);
}

}  // namespace megalith
