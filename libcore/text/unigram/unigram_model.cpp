#include "libcore/text/unigram/unigram_model.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/identity_hash.h"
#include "libcore/text/unigram/unigram_lattice.h"

namespace megalith {
namespace {

void check(const UnigramModel& model) {
  if (model.scores.size() != model.tokens.size())
    fail(ErrorKind::kInternal, model.name, ": ", model.tokens.size(), " tokens have ", model.scores.size(),
         " scores");
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    const std::string& text = model.tokens[id];
    if (text.size() > kLongestUnigramToken)
      fail(ErrorKind::kData, "token ", id, " has ", text.size(),
           " bytes; a unigram model's tokens have at most ", kLongestUnigramToken);
    if (!std::isfinite(model.scores[id]))
      fail(ErrorKind::kData, "token ", quote(text), " has the score ", model.scores[id],
           "; wanted a finite number");
  }
}

std::string hash_of(const UnigramModel& model) {
  IdentityHash hash;
  hash.add("Unigram 1");  // when this changes, so must kPackedVersion (packed_model.cpp)
  hash.add(static_cast<int64_t>(model.tokens.size()));
  for (const std::string& token : model.tokens) hash.add(token);
  for (const double score : model.scores) hash.add(std::bit_cast<int64_t>(score));
  const UnigramRules& rules = model.rules;
  hash.add(static_cast<int64_t>(rules.sums));
  hash.add(std::bit_cast<int64_t>(rules.unknown_score));
  hash.add(int64_t{rules.unknown});
  for (const int32_t id : rules.bytes) hash.add(int64_t{id});
  hash.add(int64_t{rules.looks_up_runs});
  hash.add(rules.mark);
  AddedTokens(model.raw_added).add_to(hash);
  AddedTokens(model.normalized_added).add_to(hash);
  hash.add(int64_t{model.eod});
  return hash.hex();
}

}  // namespace

size_t UnigramTables::longest() const {
  size_t longest = 0;
  for (size_t id = 0; id < tokens.size(); ++id) longest = std::max(longest, tokens[id].size());
  return longest;
}

bool UnigramTables::fit(const UnigramTables& tables) {
  const size_t ids = tables.tokens.size();
  return tables.longest() <= kLongestUnigramToken && tables.scores.size() == ids &&
         PrefixTrie::fit(tables.trie, ids) && CharacterBorders::fit(tables.borders);
}

UnigramTables make_tables(const UnigramModel& model) {
  check(model);
  std::vector<uint64_t> scores;
  for (const double score : model.scores) scores.push_back(std::bit_cast<uint64_t>(score));
  return {.tokens = TokenTexts(model.tokens),
          .trie = PrefixTrie(model.tokens).nodes(),
          .scores = SharedArray(std::move(scores)),
          .borders = CharacterBorders(std::span(model.tokens), model.rules.mark).arrays(),
          .hash = hash_of(model)};
}

}  // namespace megalith
