#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libcore/json/json.h"
#include "libcore/text/formats/byte_level_tokenizer.h"

namespace megalith {

/// Tokens of a byte-level vocabulary as its files write them (in GPT-2's byte alphabet, see byte_alphabet.h)
/// and their ids.
class Vocabulary {
 public:
  /// From {"token": id, …}. `place` begins every message (a file name). Throws kData: a value that is no id,
  /// or one id twice.
  Vocabulary(const Json& object, std::string place);

  /// Adds a token. Throws kData when it, or the id, is there already.
  void add(const std::string& token, int64_t id);

  std::optional<int32_t> find(const std::string& token) const;
  size_t size() const { return ids_.size(); }  // tokens

  /// What begins a message; a function, because it is slow to make and seldom wanted.
  using Where = std::function<std::string()>;
  /// The merge of `left` and `right`. kData with `where`: one of the two or the joined token is unknown.
  BytePairEncoder::Merge merge(const std::string& left, const std::string& right, const Where& where) const;

  /// The text of each id up to the max; empty where no token has it. Throws kData when that is more than
  /// any model has.
  std::vector<std::string> texts() const;

  /// Fills tokens, literal and byte_ids of `model`. Throws kData as texts() does, or when one of the 256
  /// bytes has no token.
  void fill(ByteLevelModel& model) const;

 private:
  int32_t need(const std::string& token, const Where& where, const char* what) const;

  std::string place_;
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<int32_t, const std::string*> tokens_;  // into the keys of ids_
};

/// Adds special tokens to a vocabulary as Hugging Face does. Both live longer.
class AddedTokenList {
 public:
  AddedTokenList(Vocabulary& vocabulary, ByteLevelModel& model)
      : vocabulary_(vocabulary), model_(model), next_(static_cast<int64_t>(vocabulary.size())) {}

  /// `token`, whose id is filled: that of the vocabulary, else the next free one. Of two with one id the
  /// later one counts. kData when another token has that id. Returns the id.
  int32_t add(AddedToken token, bool normalized);
  /// One that is found in the text as it is.
  void add_special(const std::string& text) { add({.text = text}, false); }

 private:
  Vocabulary& vocabulary_;
  ByteLevelModel& model_;
  int64_t next_;
  struct Listed {
    std::vector<AddedToken>* group;
    size_t at;
  };
  std::unordered_map<int32_t, Listed> listed_;  // by id
};

}  // namespace megalith
