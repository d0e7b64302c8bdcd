#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libcore/parallel/communicator.h"

namespace megalith {

/// Rows of a sequence that ranks exchange: all of them, on all ranks.
struct ExchangedRows {
  int64_t rows = 0;
  size_t bytes = 0;
  int ranks = 1;
  bool sequence = false;  // outside the exchange each rank has an equal part, which it gives or gets
};

/// Consecutive rows that are exchanged together.
struct RowPiece {
  int64_t begin = 0, end = 0;
  Places places = {};  // of a sequence, the ranks that have these rows outside; else empty

  /// How many calls of a communicator's library the exchange of this piece is: with parts of ranks, one each.
  int calls() const { return places.last > places.first ? places.last - places.first : 1; }
};

/// Into how many pieces along the sequence a product and the exchange of its rows are cut, so that one piece
/// is exchanged while the next is computed. The trainer (Region), the estimate of its memory and the count of
/// its traffic ask pieces().
struct ExchangeCut {
  int most = 1;  // pieces; 1: nothing is cut
  /// The least bytes of a piece, for each rank of the group. A piece that takes less time than its way
  /// through the ranks would lose more by the calls than it hides.
  size_t least_bytes = 0;

  /// The pieces, in the order of rows. A single one is exchanged by one call, and has no places.
  std::vector<RowPiece> pieces(const ExchangedRows&) const;
};

/// The cut on GPUs. At most four pieces, as Transformer Engine cuts its pipelined exchanges (num_splits in
/// transformer_engine/pytorch/module/base.py). Of the least bytes a link of 450 GB/s transfers about as many
/// at the planner's link_rate as take its link_latency for one hop (plan/device/coefficients.cpp: 0.75 and
/// 5.2 µs give 1.75 MB), and a ring has as many hops as ranks. Not measured on GPUs.
inline constexpr ExchangeCut kGpuExchangeCut{.most = 4, .least_bytes = size_t{2} << 20};

}  // namespace megalith
