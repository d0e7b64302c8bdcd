#include "libcore/text/bpe/character_ids.h"

#include <algorithm>

#include "libcore/text/unicode/byte_alphabet.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {

CharacterIds::ByteIds CharacterIds::Unknown::bytes_of(const std::vector<std::string>& tokens) {
  ByteIds ids = none();
  for (size_t id = 0; id < tokens.size(); ++id)
    if (const int byte = byte_of_token(tokens[id]); byte >= 0)
      ids[static_cast<size_t>(byte)] = static_cast<int32_t>(id);
  return ids;
}

CharacterIds::CharacterIds(const std::vector<std::string>& symbols, const Unknown& unknown, const Ends& ends)
    : unknown_(unknown) {
  std::vector<int32_t> of_character;
  for (size_t id = 0; id < symbols.size(); ++id) {
    if (symbols[id].empty()) continue;
    const CodePoint c = code_point_at(symbols[id]);
    if (c.bytes != symbols[id].size()) continue;
    if (c.value >= of_character.size()) of_character.resize(c.value + 1, -1);
    of_character[c.value] = static_cast<int32_t>(id);
  }
  std::vector<uint32_t> end_at;
  std::vector<int32_t> end_ids;
  for (const std::vector<int32_t>& some : ends) {
    end_ids.insert(end_ids.end(), some.begin(), some.end());
    end_at.push_back(static_cast<uint32_t>(end_ids.size()));
  }
  arrays_ = {SharedArray(std::move(of_character)), SharedArray(std::move(end_at)),
             SharedArray(std::move(end_ids))};
}

bool CharacterIds::fit(const Arrays& arrays, const Unknown& unknown, size_t symbols) {
  const auto fits = [&](int32_t id) { return id == -1 || static_cast<uint32_t>(id) < symbols; };
  const auto is_id = [&](int32_t id) { return id != -1 && fits(id); };
  return std::all_of(arrays.of_character.begin(), arrays.of_character.end(), fits) &&
         std::all_of(unknown.bytes.begin(), unknown.bytes.end(), fits) &&
         (!unknown.id || is_id(*unknown.id)) &&
         std::all_of(arrays.end_ids.begin(), arrays.end_ids.end(), is_id) &&
         (arrays.ends.empty() ||
          (arrays.ends.size() == symbols && std::is_sorted(arrays.ends.begin(), arrays.ends.end()) &&
           arrays.ends[symbols - 1] == arrays.end_ids.size()));
}

int32_t CharacterIds::id_of(uint32_t code_point) const {
  return code_point < arrays_.of_character.size() ? arrays_.of_character[code_point] : -1;
}

bool CharacterIds::take_bytes(std::string_view character, std::vector<int32_t>& ids) const {
  const auto id = [&](char c) { return unknown_.bytes[static_cast<uint8_t>(c)]; };
  if (std::any_of(character.begin(), character.end(), [&](char c) { return id(c) < 0; })) return false;
  std::transform(character.begin(), character.end(), std::back_inserter(ids), id);
  return true;
}

void CharacterIds::start(std::string_view utf8, std::vector<int32_t>& ids) const {
  ids.clear();
  State state;
  append(utf8, state, ids);
  finish(state, ids);
}

// An unknown token is written only when the next unknown or known character arrives, since several unknown
// characters may be one token (fuse_unk). Byte tokens may be written before it.
void CharacterIds::append(std::string_view utf8, State& state, std::vector<int32_t>& ids) const {
  while (!utf8.empty()) {
    const CodePoint c = code_point_at(utf8);
    const int32_t id = id_of(c.value);
    if (id >= 0) {
      finish(state, ids);
      ids.push_back(id);
    } else if (!take_bytes(utf8.substr(0, c.bytes), ids) && unknown_.id) {
      if (!unknown_.fuse) finish(state, ids);
      state.pending = true;
    }
    utf8.remove_prefix(c.bytes);
  }
}

void CharacterIds::finish(State& state, std::vector<int32_t>& ids) const {
  if (state.pending) ids.push_back(*unknown_.id);
  state.pending = false;
}

std::span<const int32_t> CharacterIds::end_of(int32_t symbol) const {
  const auto at = static_cast<size_t>(symbol);
  const uint32_t begin = at == 0 ? 0 : arrays_.ends[at - 1];
  return arrays_.end_ids.span().subspan(begin, arrays_.ends[at] - begin);
}

void CharacterIds::append_ends(std::span<const int32_t> symbols, bool& after_unknown,
                               std::vector<int32_t>& ids) const {
  for (const int32_t symbol : symbols)
    for (const int32_t id : end_of(symbol)) {
      const bool unknown = unknown_.fuse && id == unknown_.id;
      if (!unknown || !after_unknown) ids.push_back(id);
      after_unknown = unknown;
    }
}

void CharacterIds::end(std::vector<int32_t>& ids) const {
  if (arrays_.ends.empty()) return;
  std::vector<int32_t> ends;
  bool after_unknown = false;
  append_ends(ids, after_unknown, ends);
  ids.swap(ends);
}

CharacterIds::TakeIds CharacterIds::ending(TakeIds take) const {
  if (arrays_.ends.empty()) return take;
  return [this, take = std::move(take), after_unknown = false,
          ids = std::vector<int32_t>()](std::span<const int32_t> symbols) mutable {
    ids.clear();
    append_ends(symbols, after_unknown, ids);
    take(ids);
  };
}

bool CharacterIds::is_known(uint32_t code_point) const {
  const int32_t id = id_of(code_point);
  if (id < 0) return false;
  if (arrays_.ends.empty()) return id != unknown_.id;
  const std::span<const int32_t> ends = end_of(id);
  return ends.size() == 1 && ends[0] != unknown_.id;
}

bool CharacterIds::has_some_bytes() const {
  const auto missing = std::count(unknown_.bytes.begin(), unknown_.bytes.end(), -1);
  return missing != 0 && missing != static_cast<std::ptrdiff_t>(unknown_.bytes.size());
}

}  // namespace megalith
