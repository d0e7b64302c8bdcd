#include "libcore/text/formats/vocabulary.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/unicode/byte_alphabet.h"

namespace megalith {
namespace {

bool may_be_in_utf8(size_t byte) {
  return byte < 0xC0 || (byte > 0xC1 && byte < 0xF5);
}

}  // namespace

Vocabulary::Vocabulary(const Json& object, std::string place) : place_(std::move(place)) {
  if (!object.is_object())
    fail(ErrorKind::kData, place_, ": the vocabulary is not an object {\"token\": id, …}");
  ids_.reserve(object.as_object().size());
  tokens_.reserve(object.as_object().size());
  for (const auto& [token, id] : object.as_object()) {
    if (!id.is_int())
      fail(ErrorKind::kData, place_, ": token ", quote(token), " has id ", id.dump(), ", wanted an integer");
    add(token, id.as_int());
  }
}

Vocabulary::Vocabulary(const std::vector<std::string>& tokens, std::string place) : place_(std::move(place)) {
  for (size_t id = 0; id < tokens.size(); ++id) add(tokens[id], static_cast<int64_t>(id));
}

void Vocabulary::add(const std::string& token, int64_t id) {
  if (id < 0 || id > std::numeric_limits<int32_t>::max())
    fail(ErrorKind::kData, place_, ": token ", quote(token), " has id ", id, ", wanted 0 to ",
         std::numeric_limits<int32_t>::max());
  const auto [at, is_new] = ids_.emplace(token, static_cast<int32_t>(id));
  if (!is_new) fail(ErrorKind::kData, place_, ": token ", quote(token), " appears twice");
  const auto [other, is_free] = tokens_.emplace(at->second, &at->first);
  if (!is_free)
    fail(ErrorKind::kData, place_, ": id ", id, " belongs to two tokens, ", quote(*other->second), " and ",
         quote(token));
}

std::optional<int32_t> Vocabulary::find(const std::string& token) const {
  const auto at = ids_.find(token);
  return at == ids_.end() ? std::nullopt : std::optional(at->second);
}

int32_t Vocabulary::need(const std::string& token, const Where& where, const char* what) const {
  const auto id = find(token);
  if (!id)
    fail(ErrorKind::kData, where(), ": ", what, " ", quote(token), " is not in the vocabulary of ", place_);
  return *id;
}

BytePairEncoder::Merge Vocabulary::merge(const std::string& left, const std::string& right,
                                         const Where& where) const {
  return {need(left, where, "the left token"), need(right, where, "the right token"),
          need(left + right, where, "the joined token")};
}

std::vector<std::string> Vocabulary::texts() const {
  constexpr int32_t kMax = (1 << 21) - 1;  // more rows than any model has
  std::vector<std::string> texts;
  for (const auto& [id, token] : tokens_) {
    if (id > kMax)
      fail(ErrorKind::kData, place_, ": token ", quote(*token), " has id ", id, "; ids go to ", kMax);
    if (static_cast<size_t>(id) >= texts.size()) texts.resize(static_cast<size_t>(id) + 1);
    texts[static_cast<size_t>(id)] = *token;
  }
  return texts;
}

void Vocabulary::fill(ByteLevelModel& model, std::optional<int32_t> unknown) const {
  model.tokens = texts();
  model.literal.resize(model.tokens.size());
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    auto bytes = from_byte_alphabet(model.tokens[id]);
    model.literal[id] = !bytes;
    if (bytes) model.tokens[id] = std::move(*bytes);
  }
  std::optional<int32_t> of_others = unknown;
  for (size_t byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const std::optional<int32_t> id = find(to_byte_alphabet({&c, 1}));
    if (!id && !unknown && may_be_in_utf8(byte)) model.dropped += c;
    if (!id && !of_others) of_others = id_without_merges(model);
    model.byte_ids[byte] = id ? *id : *of_others;
  }
}

/// An id for bytes that are not merged: those that texts never have, or that are dropped before.
int32_t Vocabulary::id_without_merges(const ByteLevelModel& model) const {
  std::unordered_set<int32_t> merged;
  for (const BytePairEncoder::Merge& merge : model.merges) {
    merged.insert(merge.left);
    merged.insert(merge.right);
  }
  std::optional<int32_t> least;
  for (const auto& [token, id] : ids_)
    if (!merged.contains(id)) least = std::min(least.value_or(id), id);
  if (least) return *least;
  fail(ErrorKind::kData, place_,
       ": bytes without a token need a token that is in no merge, and all tokens are");
}

int32_t AddedTokenList::add(AddedToken token, bool normalized) {
  const auto known = vocabulary_.find(token.text);
  if (!known) vocabulary_.add(token.text, next_);
  token.id = known.value_or(static_cast<int32_t>(next_));
  next_ = std::max(next_, int64_t{token.id} + 1);
  if (const auto old = listed_.find(token.id); old != listed_.end()) {
    const auto [group, at] = old->second;  // the order within a group does not matter
    listed_[group->back().id].at = at;
    std::swap((*group)[at], group->back());
    group->pop_back();
  }
  auto& group = normalized ? normalized_ : raw_;
  listed_[token.id] = {&group, group.size()};
  group.push_back(token);
  return token.id;
}

}  // namespace megalith
