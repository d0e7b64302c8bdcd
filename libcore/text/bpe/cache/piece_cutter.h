#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libcore/base/machine/isa.h"
#include "libcore/text/bpe/merge_borders.h"
#include "libcore/text/bpe/piece_key.h"

namespace megalith {

/// Pretokens that follow each other from the beginning of a text on.
struct PretokenEnds {
  std::string_view text;
  std::span<const uint32_t> ends;
};

/// Writes the ends of the pieces of all pretokens to `out`, in order, and returns where they end. Pretokens
/// of more than PieceKey::kLongest bytes are cut at every border, others are pieces. `out` has room for
/// kSpareEnds more than there can be. May return null instead, when each pretoken is a piece.
using CutPieces = uint32_t* (*)(const MergeBorders& borders, const PretokenEnds& pretokens, uint32_t* out);
constexpr size_t kSpareEnds = 64;
uint32_t* cut_pieces_generic(const MergeBorders& borders, const PretokenEnds& pretokens, uint32_t* out);
uint32_t* cut_pieces_avx512vbmi2(const MergeBorders& borders, const PretokenEnds& pretokens, uint32_t* out);
/// The fastest of them for `isa`.
CutPieces cut_pieces(Isa isa);

/// Cuts long pretokens into pieces that merging keeps apart, because a run of Chinese hardly ever comes
/// again, but its characters do, so that the token cache finds them. Without it text of many languages takes
/// 1.97 times the processor time, English 1.08.
class PieceCutter {
 public:
  /// Keeps a reference to `borders`.
  explicit PieceCutter(const MergeBorders& borders);

  /// The ends of the pieces; they last until the next call.
  std::span<const uint32_t> cut(const PretokenEnds& pretokens);

  /// Gives back what an unusually long text took.
  void trim();

 private:
  const MergeBorders& borders_;
  CutPieces cut_pieces_;  // the one for this processor
  std::vector<uint32_t> ends_;
};

}  // namespace megalith
