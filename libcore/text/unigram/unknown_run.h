#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/unigram/unigram_model.h"

namespace megalith {

/// Neighbouring unknown characters of a text, and what they become (see UnigramRules).
class UnknownRun {
 public:
  UnknownRun(const UnigramTables& tables, const UnigramRules& rules);

  bool empty() const { return !is_open_; }
  /// Adds a character, or the text of the unknown token. Appends the ids that are certain to `ids`.
  void add(std::string_view text, std::vector<int32_t>& ids);
  /// Ends the run, if there is one: appends the rest of its ids.
  void finish(std::vector<int32_t>& ids);
  /// Forgets the run.
  void clear();

 private:
  bool append_bytes(std::vector<int32_t>& ids) const;

  PrefixTrie trie_;
  const UnigramRules& rules_;
  size_t longest_ = 0;  // bytes of the longest token that a run may be
  bool has_all_bytes_, has_no_bytes_;
  bool is_open_ = false;
  std::string text_;      // of the run, as far as its ids are not certain
  bool is_long_ = false;  // too long for a token
};

}  // namespace megalith
