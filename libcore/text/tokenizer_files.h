#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/json/json.h"

namespace megalith {

/// Where a tokenizer comes from. Filled from the options --tokenizer-type, --vocab-file, --merge-file,
/// --tokenizer-model.
struct TokenizerFiles {
  std::string type;    // "GPT2BPETokenizer", "HuggingFaceTokenizer", "NullTokenizer", …
  std::string vocab;   // vocab.json (GPT2BPETokenizer)
  std::string merges;  // merges.txt (GPT2BPETokenizer)
  std::string model;   // tokenizer.json or its folder, a SentencePiece model, tiktoken's ranks
  int vocab_size = 0;  // value of --vocab-size for NullTokenizer and TikTokenizer (0: Megatron's 131072)
  bool hf_special_tokens = true;  // HuggingFaceTokenizer: add the post-processor's ids, such as <s>
  std::string tiktoken_pattern = "v2";
  int tiktoken_special_tokens = 1000;
  std::vector<std::string> special_tokens = {};  // --tokenizer-special-tokens
  /// --eod-token: the token that ends a document instead of the one that the files name (GPT-2, Hugging
  /// Face).
  std::string eod = {};
};

/// A tokenizer's files by their usual names ("vocab.json"): the files in a folder, or files with any other
/// paths.
struct TokenizerFolder {
  TokenizerFolder() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a folder is one
  TokenizerFolder(const std::string& folder) : path(folder) {}
  /// Pairs of a usual name and a file's path; at least one.
  explicit TokenizerFolder(std::vector<std::pair<std::string, std::string>> files);

  bool empty() const { return path.empty(); }
  bool has(const std::string& name) const;
  /// The path of the file with this usual name, whether it is there or not.
  std::string file(const std::string& name) const;

  std::string path;                          // the folder, or the first file; errors name it
  std::map<std::string, std::string> named;  // paths by usual name; empty: the files are in the folder `path`
};

/// is_tokenizer_file(): whether a file of this name belongs to a tokenizer. tokenizer_file_names(): all such
/// names.
bool is_tokenizer_file(std::string_view name);
std::span<const char* const> tokenizer_file_names();

/// The tokenizer in a folder; nothing if there is none. If the files could serve several tokenizers, `type`
/// decides: it is the type that was requested or used in training (empty: not known). Without a type,
/// tokenizer.json takes precedence, as in transformers, since no other file says how texts are split. kData
/// for a tokenizer.model that is not a tokenizer.
std::optional<TokenizerFiles> find_tokenizer(const TokenizerFolder& folder, const std::string& type = {});

/// The tokenizer in a file or folder, recognized by its content and not by its name: GPT-2's vocab.json with
/// merges.txt next to it (or the reverse) and a folder of both, a tokenizer.json or its folder,
/// SentencePiece's protobuf (`type` says which of its two tokenizers is meant), tiktoken's ranks. In a folder
/// also one NAME-vocab.json with NAME-merges.txt, one NAME.tiktoken, and the folder "tokenizer". Nothing if
/// the path does not exist. kData, with what a tokenizer's file looks like, for any other file; kNoInput for
/// a folder without a tokenizer, or if only one of GPT-2's two files exists.
std::optional<TokenizerFiles> recognize_tokenizer(const std::string& path, const std::string& type = {});

/// Returns `args`, the saved options of a checkpoint, changed to name the checkpoint's own copy of the
/// tokenizer (in `folder`/tokenizer or in `folder`): the files that the run used may be gone or on another
/// machine. Without a copy, `args` is returned unchanged.
Json with_own_tokenizer(Json args, const std::string& folder);

}  // namespace megalith
