#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libcore/base/machine/isa.h"
#include "libcore/text/bpe/cache/whole_tokens.h"
#include "libcore/text/bpe/merge_borders.h"
#include "libcore/text/bpe/piece_key.h"

namespace megalith {

/// Consecutive pretokens from the beginning of a text.
struct PretokenEnds {
  std::string_view text;
  std::span<const uint32_t> ends;
};

/// Writes the ends of the pieces of all pretokens to `out`, in order, and returns the end of what it wrote.
/// Pretokens of more than PieceKey::kLongest bytes are cut at every border; others are one piece each. `out`
/// needs room for kSpareEnds more ends than there can be. If each pretoken is one piece, the function may
/// return null instead; the ends of the pieces are then those of the pretokens.
using CutPieces = uint32_t* (*)(const MergeBorders& borders, const PretokenEnds& pretokens, uint32_t* out);
constexpr size_t kSpareEnds = 64;
uint32_t* cut_pieces_generic(const MergeBorders& borders, const PretokenEnds& pretokens, uint32_t* out);
uint32_t* cut_pieces_avx512vbmi2(const MergeBorders& borders, const PretokenEnds& pretokens, uint32_t* out);
/// The fastest implementation for `isa`.
CutPieces cut_pieces(Isa isa);

/// Cuts long pretokens into pieces that merging keeps apart. A run of Chinese hardly ever recurs as a whole,
/// but its characters do, and the token cache finds them. Without the cuts, text in many languages takes 1.97
/// times the processor time, and English 1.08 times.
class PieceCutter {
 public:
  /// Keeps references to `borders` and `whole`.
  PieceCutter(const MergeBorders& borders, const WholeTokenIds& whole);

  /// The ends of the pieces, valid until the next call.
  std::span<const uint32_t> cut(const PretokenEnds& pretokens);

  /// Frees memory that an unusually long text took.
  void trim();

 private:
  const MergeBorders& borders_;
  WholeTokens whole_;
  CutPieces cut_pieces_;  // the implementation for this processor
  std::vector<uint32_t> ends_;
};

}  // namespace megalith
