#pragma once

#include <optional>
#include <string>

#include "libcore/json/json.h"

namespace megalith {

/// A tokenizer's files as --tokenizer-type, --vocab-file, --merge-file and --tokenizer-model name them.
struct TokenizerModel {
  std::string type, vocab, merges, model;
};

/// The tokenizer in a folder; nothing where it holds none. Where its files would serve several, `type`
/// decides, the one that was asked for or trained with (empty: not known), else tokenizer.json comes first,
/// as for transformers, because it alone says how its texts are cut. kData for a tokenizer.model that is
/// none.
std::optional<TokenizerModel> find_tokenizer(const std::string& folder, const std::string& type = {});

/// What a file or a folder holds, known by its content and not by its name: GPT-2's vocab.json (with
/// merges.txt beside it, or the reverse) and a folder of both, a tokenizer.json or its folder,
/// SentencePiece's protobuf (of which `type` may name either tokenizer), tiktoken's ranks. In a folder also
/// one NAME-vocab.json with NAME-merges.txt, one NAME.tiktoken, and the folder "tokenizer". Nothing where
/// there is no such path. kData, saying what a tokenizer's file looks like, for anything else; kNoInput where
/// the other one of GPT-2's two files lacks.
std::optional<TokenizerModel> recognize_tokenizer(const std::string& path, const std::string& type = {});

/// The saved options of a checkpoint with its own copy of the tokenizer, in `folder`/tokenizer or in
/// `folder`, in place of the files that the run had, which may be gone or on another machine. As they are
/// where there is no copy.
Json with_own_tokenizer(Json args, const std::string& folder);

}  // namespace megalith
