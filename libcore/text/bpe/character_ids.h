#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// The ids with which merging of a pretoken starts if the vocabulary holds characters instead of bytes, as
/// SentencePiece's do. A character becomes its own id. If it has none, it becomes the ids of its bytes; if
/// these have none, the unknown token; if there is no such token, nothing. The ids equal those of Hugging
/// Face tokenizers' BPE with "byte_fallback" and "unk_token".
class CharacterIds {
 public:
  struct Unknown {
    std::optional<int32_t> id;   // "unk_token"; without one, unknown characters are left out
    bool fuse = false;           // whether a run of unknown characters gives one unknown token
    bool byte_fallback = false;  // "<0x00>" to "<0xFF>" are tried before the unknown token
  };
  /// `tokens`: the text of each id.
  CharacterIds(const std::vector<std::string>& tokens, Unknown unknown);

  /// The state between two parts of a pretoken.
  struct State {
    bool pending = false;  // whether an unknown token must be written before the next known character
  };
  /// Appends the ids of `utf8` (valid, whole characters), the next part of a pretoken. For the first part,
  /// `state` is a new State.
  void append(std::string_view utf8, State& state, std::vector<int32_t>& ids) const;
  /// Ends the pretoken: appends the unknown token if one is pending.
  void finish(State& state, std::vector<int32_t>& ids) const;

  /// Replaces `ids` with those of `utf8` (valid) as a whole.
  void start(std::string_view utf8, std::vector<int32_t>& ids) const;

 private:
  int32_t id_of(uint32_t code_point) const;
  /// Appends the ids of the character's bytes if all of them have one, and returns whether they do.
  bool take_bytes(std::string_view character, std::vector<int32_t>& ids) const;

  std::vector<int32_t> of_character_;  // id by code point; -1: none
  std::array<int32_t, 256> of_byte_;   // -1: none
  Unknown unknown_;
};

}  // namespace megalith
