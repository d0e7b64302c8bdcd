#include "libcore/text/bpe/character_ids.h"

#include <algorithm>

#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

std::string byte_token(size_t byte) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte / 16], kDigits[byte % 16], '>'};
}

}  // namespace

CharacterIds::CharacterIds(const std::vector<std::string>& tokens, Unknown unknown) : unknown_(unknown) {
  of_byte_.fill(-1);
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string& token = tokens[id];
    if (token.empty()) continue;
    const CodePoint c = code_point_at(token);
    if (c.bytes == token.size()) {
      if (c.value >= of_character_.size()) of_character_.resize(c.value + 1, -1);
      of_character_[c.value] = static_cast<int32_t>(id);
    }
    if (!unknown_.byte_fallback || !token.starts_with("<0x")) continue;
    for (size_t byte = 0; byte < 256; ++byte)
      if (token == byte_token(byte)) of_byte_[byte] = static_cast<int32_t>(id);
  }
}

int32_t CharacterIds::id_of(uint32_t code_point) const {
  return code_point < of_character_.size() ? of_character_[code_point] : -1;
}

bool CharacterIds::take_bytes(std::string_view character, std::vector<int32_t>& ids) const {
  const auto id = [&](char c) { return of_byte_[static_cast<uint8_t>(c)]; };
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

}  // namespace megalith
