#pragma once

#include <optional>
#include <string>

#include "libcore/json/json.h"

namespace megalith {

/// A tokenizer's files as --tokenizer-type, --vocab-file, --merge-file and --tokenizer-model name them.
struct TokenizerModel {
  std::string type, vocab, merges, model;
};

/// What a file or a folder holds, known by its content and not by its name: GPT-2's vocab.json (with
/// merges.txt beside it, or the reverse) and a folder of both, a tokenizer.json or its folder,
/// SentencePiece's protobuf, tiktoken's ranks. Nothing where there is no such path. kData, saying what a
/// tokenizer's file looks like, for anything else; kNoInput where the other one of GPT-2's two files lacks.
std::optional<TokenizerModel> recognize_tokenizer(const std::string& path);

/// The saved options of a checkpoint with its own copy of the tokenizer, in `folder`/tokenizer or in
/// `folder`, in place of the files that the run had, which may be gone or on another machine. As they are
/// where there is no copy.
Json with_own_tokenizer(Json args, const std::string& folder);

}  // namespace megalith
