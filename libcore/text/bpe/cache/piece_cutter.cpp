#include "libcore/text/bpe/cache/piece_cutter.h"

#include "libcore/text/idle_pool.h"

namespace megalith {

uint32_t* cut_pieces_generic(const MergeBorders& borders, const PretokenEnds& pretokens, uint32_t* out) {
  uint32_t begin = 0;
  for (const uint32_t end : pretokens.ends) {
    const std::string_view pretoken = pretokens.text.substr(begin, end - begin);
    if (pretoken.size() > PieceKey::kLongest)
      for (size_t at = 1; at < pretoken.size(); ++at)
        if (borders.parts(pretoken, at)) *out++ = begin + static_cast<uint32_t>(at);
    *out++ = begin = end;
  }
  return out;
}

CutPieces cut_pieces(Isa isa) {
  return select<CutPieces>(
      isa, {.generic = cut_pieces_generic, .avx512vbmi2 = MEGALITH_IF_SIMD(cut_pieces_avx512vbmi2)});
}

PieceCutter::PieceCutter(const MergeBorders& borders, const WholeTokenIds& whole)
    : borders_(borders), whole_(whole), cut_pieces_(cut_pieces(chosen_isa())) {}

std::span<const uint32_t> PieceCutter::cut(const PretokenEnds& pretokens) {
  const size_t max_ends = pretokens.ends.size() + pretokens.ends.back() + kSpareEnds;
  if (ends_.size() < max_ends) ends_.resize(max_ends);
  const uint32_t* const after = cut_pieces_(borders_, pretokens, ends_.data());
  if (after == nullptr) return pretokens.ends;
  const std::span<uint32_t> pieces(ends_.data(), static_cast<size_t>(after - ends_.data()));
  return pieces.first(whole_.join(pretokens.text, pretokens.ends, pieces));
}

void PieceCutter::trim() {
  constexpr size_t kKept = size_t{1} << 18;
  if (ends_.size() > kKept) free_memory(ends_);
}

}  // namespace megalith
