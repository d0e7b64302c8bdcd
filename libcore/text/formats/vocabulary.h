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

/// The tokens of a byte-level vocabulary, as its files write them (in GPT-2's byte alphabet, see
/// byte_alphabet.h), and their ids.
class Vocabulary {
 public:
  /// Reads {"token": id, …}. `place` (a file name) begins every message. Throws kData for a value that is not
  /// an id, or an id that appears twice.
  Vocabulary(const Json& object, std::string place);
  /// The token of each id. Throws kData for one that appears twice.
  Vocabulary(const std::vector<std::string>& tokens, std::string place);

  /// Adds a token. Throws kData if it or its id already exists.
  void add(const std::string& token, int64_t id);

  std::optional<int32_t> find(std::string_view token) const;
  size_t size() const { return entries_.size(); }  // number of tokens

  /// Returns the beginning of an error message. It is a function because the text is slow to build and rarely
  /// needed.
  using Where = std::function<std::string()>;
  /// The tokens that a merge joins.
  struct Sides {
    std::string_view left, right;
  };
  /// The merges of sides(0) to sides(count - 1); each result must be valid while the next 31 are asked for.
  /// Many are looked up together, so that the processor waits for the memory of all of them at once. Throws
  /// kData with where(i) if a side of merge i or the joined token is unknown.
  std::vector<BytePairEncoder::Merge> merges(size_t count, const std::function<Sides(size_t)>& sides,
                                             const std::function<std::string(size_t)>& where) const;

  /// The text of each id up to the largest; empty if no token has the id. Throws kData if an id is larger
  /// than that of any model.
  std::vector<std::string> texts() const;

  /// Fills tokens, literal, byte_ids and dropped of `model`, whose merges are filled. A byte without a token
  /// becomes `unknown`, or is dropped. Throws kData as texts() does.
  void fill(ByteLevelModel& model, std::optional<int32_t> unknown = {}) const;

 private:
  int32_t id_without_merges(const ByteLevelModel& model) const;
  class Lookups;
  int32_t need(std::string_view token, uint64_t hash, const Where& where, const char* what) const;

  struct Entry {
    std::string token;
    int32_t id;
  };
  /// A place in the table of all entries, with a part of the token's hash: most places that hold another
  /// token are passed over without a look at it. Merges ask for three tokens each, a million and a half with
  /// Gemma.
  struct Slot {
    uint32_t hash = 0;
    uint32_t entry = 0;  // its index, from 1; 0: none
  };
  size_t first_slot(uint64_t hash) const { return (hash >> 32) & (slots_.size() - 1); }
  size_t find_slot(std::string_view token, uint64_t hash) const;
  void reserve(size_t tokens);
  uint32_t& entry_of(int32_t id);

  std::string place_;
  std::vector<Entry> entries_;                    // in the order in which they were added
  std::vector<Slot> slots_;                       // a power of two, at most half of them taken
  std::vector<uint32_t> by_id_;                   // the index of the entry, from 1; 0: no token has the id
  std::unordered_map<int32_t, uint32_t> beyond_;  // the same for ids beyond those of any model
};

/// Adds special tokens to a vocabulary as Hugging Face does. Both arguments must outlive it.
class AddedTokenList {
 public:
  /// Fills raw_added and normalized_added of `model`.
  AddedTokenList(Vocabulary& vocabulary, TokenizerModel& model)
      : vocabulary_(vocabulary),
        raw_(model.raw_added),
        normalized_(model.normalized_added),
        next_(static_cast<int64_t>(vocabulary.size())) {}

  /// Adds `token` and returns its id: that of the vocabulary, or else the next free one. If a token is added
  /// twice, the last call counts. kData if another token has the next free id.
  int32_t add(AddedToken token, bool normalized);
  /// Adds a token that is looked for in the original text.
  void add_special(const std::string& text) { add({.text = text}, false); }

 private:
  Vocabulary& vocabulary_;
  std::vector<AddedToken>&raw_, &normalized_;
  int64_t next_;
  struct Listed {
    std::vector<AddedToken>* group;
    size_t at;
  };
  std::unordered_map<int32_t, Listed> listed_;  // by id
};

}  // namespace megalith
