#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libcore/text/formats/byte_level_tokenizer.h"

namespace megalith {

struct TikTokenSettings {
  std::string pattern = "v2";  // which of Megatron's two patterns: "v1" or "v2"
  // How many ids precede those of the file: <unk>, <s>, </s>, <mask>, <pad>, <cls>, <sep>, <SPECIAL_7>, …
  int special_tokens = 1000;
  /// The number of ids, special tokens included; 0: Megatron's 131072, or all of a base64 file.
  int vocab_size = 0;
  /// The first special tokens, in order; <unk> to <sep>, the seven above, must be among them. Empty: just
  /// these seven.
  std::vector<std::string> special = {};
};

/// Reads tiktoken's ranks as Megatron does: a JSON list of {"rank", "token_bytes" in base64, "token_str"}, or
/// tiktoken's own form, "base64 rank" a line. The first vocab_size - special_tokens tokens are taken, with
/// their ids shifted by special_tokens. </s> ends a document; special tokens are found as text. Of Mistral's
/// tekken.json the file says all this itself. Format and rules: docs/formats/tokenizer.md. Throws kUsage
/// (settings that fit no file), kNoInput, kData.
ByteLevelModel read_tiktoken(const std::string& path, const TikTokenSettings& settings);

/// The tokenizer of such a file. The tables computed from a large file are cached (io/cache/build_cache.h),
/// so that later runs start at once.
std::unique_ptr<ByteLevelTokenizer> make_tiktoken_tokenizer(const std::string& path,
                                                            const TikTokenSettings& settings);

}  // namespace megalith
