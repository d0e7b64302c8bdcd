#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/shared_array.h"

namespace megalith {

/// The ids with which merging of a pretoken starts if the vocabulary holds characters instead of bytes, as
/// SentencePiece's do. A character becomes its own id. If it has none, it becomes the ids of its bytes; if
/// these have none, the unknown token; if there is no such token, nothing. The ids equal those of Hugging
/// Face tokenizers' BPE with "byte_fallback" and "unk_token".
///
/// A SentencePiece model may also merge symbols that are no tokens (see sentencepiece_symbols.h). end()
/// replaces those that are left after merging.
class CharacterIds {
 public:
  using ByteIds = std::array<int32_t, 256>;
  struct Unknown {
    std::optional<int32_t> id;  // "unk_token"; without one, unknown characters are left out
    bool fuse = false;          // whether a run of unknown characters gives one unknown token
    ByteIds bytes = none();     // the ids of "<0x00>" to "<0xFF>", which are tried first; -1: no such token
    static ByteIds none() {
      ByteIds ids;
      ids.fill(-1);
      return ids;
    }
    /// Those of tokens with these texts.
    static ByteIds bytes_of(const std::vector<std::string>& tokens);
  };
  /// What each symbol becomes after merging: its own id, or other ids.
  using Ends = std::vector<std::vector<int32_t>>;
  /// `symbols`: the text of each id, of tokens and of other symbols; empty: no text gives it. `ends`: for
  /// each of them; empty: all are tokens.
  CharacterIds(const std::vector<std::string>& symbols, const Unknown& unknown, const Ends& ends = {});

  struct Arrays {
    SharedArray<int32_t> of_character;  // id by code point; -1: none
    SharedArray<uint32_t> ends;         // where in end_ids the ids of each symbol end; empty: all are tokens
    SharedArray<int32_t> end_ids;
  };
  const Arrays& arrays() const { return arrays_; }
  const Unknown& unknown() const { return unknown_; }
  /// Reuses the arrays of another instance, such as those of a mapped cache file.
  CharacterIds(Arrays arrays, const Unknown& unknown) : arrays_(std::move(arrays)), unknown_(unknown) {}
  /// Whether these can be used with `symbols` symbols: no id is beyond them.
  static bool fit(const Arrays& arrays, const Unknown& unknown, size_t symbols);

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

  /// Replaces what is left after merging, and makes runs of the unknown token one if `fuse` is set.
  void end(std::vector<int32_t>& ids) const;
  using TakeIds = std::function<void(std::span<const int32_t>)>;
  /// A function that does what end() does with the parts of a pretoken, and passes them on to `take`.
  TakeIds ending(TakeIds take) const;

  /// The id with which merging starts for a character; -1: it has none.
  int32_t id_of(uint32_t code_point) const;
  /// Whether all symbols are tokens, so that end() does nothing.
  bool ends_with_tokens() const { return arrays_.ends.empty(); }
  /// Whether the character certainly gives no unknown token, in any text.
  bool is_known(uint32_t code_point) const;
  /// Whether some bytes have ids and others have none. Unknown tokens then come after the ids of bytes that
  /// follow them, so no text may be cut between characters.
  bool has_some_bytes() const;

 private:
  /// Appends the ids of the character's bytes if all of them have one, and returns whether they do.
  bool take_bytes(std::string_view character, std::vector<int32_t>& ids) const;
  std::span<const int32_t> end_of(int32_t symbol) const;
  void append_ends(std::span<const int32_t> symbols, bool& after_unknown, std::vector<int32_t>& ids) const;

  Arrays arrays_;
  Unknown unknown_;
};

}  // namespace megalith
