#include "libcore/text/wordpiece/wordpiece_model.h"

#include "libcore/text/identity_hash.h"

namespace megalith {
namespace {

std::string hash_of(const WordPieceModel& model) {
  IdentityHash hash;
  hash.add("WordPiece 1");  // when this changes, so must kPackedVersion (packed_model.cpp)
  hash.add(static_cast<int64_t>(model.tokens.size()));
  for (const std::string& token : model.tokens) hash.add(token);
  const WordPieceRules& rules = model.rules;
  for (const bool cut : {rules.cuts.at_spaces, rules.cuts.by_letters}) hash.add(int64_t{cut});
  for (const WordCuts::Apart apart : {rules.cuts.punctuation, rules.cuts.digits})
    hash.add(static_cast<int64_t>(apart));
  hash.add(rules.prefix);
  hash.add(int64_t{rules.unknown});
  hash.add(static_cast<int64_t>(rules.longest_word));
  AddedTokens(model.raw_added).add_to(hash);
  AddedTokens(model.normalized_added).add_to(hash);
  hash.add(int64_t{model.eod});
  return hash.hex();
}

}  // namespace

WordPieceTables make_tables(const WordPieceModel& model) {
  const std::string& prefix = model.rules.prefix;
  std::vector<std::string> others;
  for (const std::string& token : model.tokens)
    others.push_back(token.starts_with(prefix) ? token.substr(prefix.size()) : "");
  return {.tokens = TokenTexts(model.tokens),
          .firsts = PrefixTrie(model.tokens).nodes(),
          .others = PrefixTrie(others).nodes(),
          .hash = hash_of(model)};
}

}  // namespace megalith
