#include "libcore/text/formats/vocabulary.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <span>
#include <unordered_set>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/unicode/byte_alphabet.h"

namespace megalith {
namespace {

constexpr int32_t kMaxId = (1 << 21) - 1;  // more rows than any model has

uint64_t hash_of(std::string_view token) {
  return std::hash<std::string_view>()(token);
}

bool may_be_in_utf8(size_t byte) {
  return byte < 0xC0 || (byte > 0xC1 && byte < 0xF5);
}

}  // namespace

Vocabulary::Vocabulary(const Json& object, std::string place) : place_(std::move(place)) {
  if (!object.is_object())
    fail(ErrorKind::kData, place_, ": the vocabulary is not an object {\"token\": id, …}");
  reserve(object.as_object().size());
  for (const auto& [token, id] : object.as_object()) {
    if (!id.is_int())
      fail(ErrorKind::kData, place_, ": token ", quote(token), " has id ", id.dump(), ", wanted an integer");
    add(token, id.as_int());
  }
}

Vocabulary::Vocabulary(const std::vector<std::string>& tokens, std::string place) : place_(std::move(place)) {
  reserve(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) add(tokens[id], static_cast<int64_t>(id));
}

/// Makes room for so many tokens.
void Vocabulary::reserve(size_t tokens) {
  constexpr size_t kLeast = 512;
  entries_.reserve(tokens);
  slots_.assign(std::bit_ceil(std::max(2 * tokens, kLeast)), {});
  for (size_t i = 0; i < entries_.size(); ++i) {
    const uint64_t hash = hash_of(entries_[i].token);
    slots_[find_slot(entries_[i].token, hash)] = {static_cast<uint32_t>(hash), static_cast<uint32_t>(i + 1)};
  }
}

/// The index of a token's slot, or of the free one where it would be.
size_t Vocabulary::find_slot(std::string_view token, uint64_t hash) const {
  for (size_t at = first_slot(hash);; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[at];
    if (slot.entry == 0) return at;
    if (slot.hash == static_cast<uint32_t>(hash) && entries_[slot.entry - 1].token == token) return at;
  }
}

uint32_t& Vocabulary::entry_of(int32_t id) {
  if (id > kMaxId) return beyond_[id];
  if (static_cast<size_t>(id) >= by_id_.size())
    by_id_.resize(std::max<size_t>(static_cast<size_t>(id) + 1, entries_.capacity()));
  return by_id_[static_cast<size_t>(id)];
}

void Vocabulary::add(const std::string& token, int64_t id) {
  if (id < 0 || id > std::numeric_limits<int32_t>::max())
    fail(ErrorKind::kData, place_, ": token ", quote(token), " has id ", id, ", wanted 0 to ",
         std::numeric_limits<int32_t>::max());
  if (2 * (entries_.size() + 1) > slots_.size()) reserve(2 * entries_.size() + 1);
  const uint64_t hash = hash_of(token);
  Slot& slot = slots_[find_slot(token, hash)];
  if (slot.entry != 0) fail(ErrorKind::kData, place_, ": token ", quote(token), " appears twice");
  uint32_t& entry = entry_of(static_cast<int32_t>(id));
  if (entry != 0)
    fail(ErrorKind::kData, place_, ": id ", id, " belongs to two tokens, ", quote(entries_[entry - 1].token),
         " and ", quote(token));
  entries_.push_back({token, static_cast<int32_t>(id)});
  entry = static_cast<uint32_t>(entries_.size());
  slot = {static_cast<uint32_t>(hash), entry};
}

std::optional<int32_t> Vocabulary::find(std::string_view token) const {
  const Slot& slot = slots_[find_slot(token, hash_of(token))];
  if (slot.entry == 0) return std::nullopt;
  return entries_[slot.entry - 1].id;
}

int32_t Vocabulary::need(std::string_view token, uint64_t hash, const Where& where, const char* what) const {
  const Slot& slot = slots_[find_slot(token, hash)];
  if (slot.entry == 0)
    fail(ErrorKind::kData, where(), ": ", what, " ", quote(token), " is not in the vocabulary of ", place_);
  return entries_[slot.entry - 1].id;
}

/// Tokens of some merges, looked up together: first the places of all of them are on their way, then the
/// entries to which these lead.
class Vocabulary::Lookups {
 public:
  static constexpr size_t kMost = 32;  // merges

  explicit Lookups(const Vocabulary& of) : of_(of) {}

  void add(const Sides& sides) {
    std::string& joined = joined_[count_];
    joined.assign(sides.left).append(sides.right);
    Tokens& tokens = tokens_[count_++];
    tokens = {
        {{sides.left, hash_of(sides.left)}, {sides.right, hash_of(sides.right)}, {joined, hash_of(joined)}}};
    for (const Token& token : tokens) __builtin_prefetch(&of_.slots_[of_.first_slot(token.hash)]);
  }
  /// Passes the ids of each merge's left, right and joined token to `out`, and forgets the merges.
  void take(const std::function<std::string(size_t)>& where, std::vector<BytePairEncoder::Merge>& out) {
    constexpr const char* kWhat[] = {"the left token", "the right token", "the joined token"};
    for (const Tokens& tokens : std::span(tokens_).first(count_))
      for (const Token& token : tokens)
        if (const uint32_t entry = of_.slots_[of_.first_slot(token.hash)].entry; entry != 0)
          __builtin_prefetch(&of_.entries_[entry - 1]);
    for (const Tokens& tokens : std::span(tokens_).first(count_)) {
      std::array<int32_t, 3> ids;
      for (size_t k = 0; k < ids.size(); ++k)
        ids[k] = of_.need(
            tokens[k].text, tokens[k].hash, [&] { return where(out.size()); }, kWhat[k]);
      out.push_back({ids[0], ids[1], ids[2]});
    }
    count_ = 0;
  }
  bool full() const { return count_ == kMost; }

 private:
  struct Token {
    std::string_view text;
    uint64_t hash;
  };
  using Tokens = std::array<Token, 3>;

  const Vocabulary& of_;
  std::array<Tokens, kMost> tokens_;
  std::array<std::string, kMost> joined_;
  size_t count_ = 0;
};

std::vector<BytePairEncoder::Merge> Vocabulary::merges(
    size_t count, const std::function<Sides(size_t)>& sides,
    const std::function<std::string(size_t)>& where) const {
  Lookups lookups(*this);
  std::vector<BytePairEncoder::Merge> out;
  out.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    lookups.add(sides(i));
    if (lookups.full()) lookups.take(where, out);
  }
  lookups.take(where, out);
  return out;
}

std::vector<std::string> Vocabulary::texts() const {
  std::vector<std::string> texts;
  for (const auto& [token, id] : entries_) {
    if (id > kMaxId)
      fail(ErrorKind::kData, place_, ": token ", quote(token), " has id ", id, "; ids go to ", kMaxId);
    if (static_cast<size_t>(id) >= texts.size()) texts.resize(static_cast<size_t>(id) + 1);
    texts[static_cast<size_t>(id)] = token;
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
  for (const auto& [token, id] : entries_)
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
