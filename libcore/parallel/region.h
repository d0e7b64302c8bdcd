#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "libcore/parallel/communicator.h"
#include "libcore/tensor/arena.h"

namespace megalith {

/// Into how many pieces along the sequence a product and the exchange of its rows are cut, so that one piece
/// is exchanged while the next is computed.
struct ExchangeCut {
  int most = 1;  // pieces; 1: nothing is cut
  /// The least bytes of a piece, for each rank of the group. A piece that takes less time than its way
  /// through the ranks would lose more by the calls than it hides.
  size_t least_bytes = 0;

  /// Pieces of a tensor of this size, of which `ranks` ranks exchange the rows.
  int pieces(size_t bytes, int ranks) const;
};

/// The cut on GPUs. At most four pieces, as Transformer Engine cuts its pipelined exchanges (num_splits in
/// transformer_engine/pytorch/module/base.py). Of the least bytes a link of 450 GB/s transfers about as many
/// at the planner's link_rate as take its link_latency for one hop (plan/device/coefficients.cpp: 0.75 and
/// 5.2 µs give 1.75 MB), and a ring has as many hops as ranks. Not measured on GPUs.
inline constexpr ExchangeCut kGpuExchangeCut{.most = 4, .least_bytes = size_t{2} << 20};

/// The entry and exit of a tensor-parallel layer (f and g of Shoeybi et al. 2019; with sequence parallelism
/// those of Korthikanti et al. 2022). Rows are [s, b, h]; with sequence parallelism a rank holds s/tp of them
/// outside the region and all of them inside.
///
/// Where rows are cut, the pieces are exchanged on a stream of the region's own, beside the compute stream.
/// Before a function other than enter_later() returns, the compute stream waits for them. Without sequence
/// parallelism a piece is a range of rows of all ranks; with it, the rows of consecutive ranks.
class Region {
 public:
  /// `tensor` must outlive the region. `sequence`: outside the region, rows are split along s.
  explicit Region(Communicator& tensor, bool sequence = false) : tensor_(&tensor), sequence_(sequence) {}
  /// Exchanges rows in pieces on `beside`, a stream of the compute stream's device.
  Region(Communicator& tensor, bool sequence, const ExchangeCut& cut, const Stream& beside)
      : tensor_(&tensor), sequence_(sequence), cut_(cut), beside_(beside) {}

  /// Work of the compute stream on rows [begin, end) of the sequence.
  using OnRows = std::function<void(int64_t begin, int64_t end)>;
  /// The same, with the whole tensor that has these rows.
  using OnRowsOf = std::function<void(ConstView whole, int64_t begin, int64_t end)>;

  /// Entry: returns `x`; with sequence parallelism, the rows of all ranks gathered in the arena.
  ConstView enter(Stream&, Arena&, ConstView x) const;
  /// Entry of a product: calls `use` for each piece in the order of rows, as soon as the compute stream may
  /// read it. The whole tensor is in the arena.
  void enter(Stream&, Arena&, ConstView x, const OnRowsOf& use) const;
  /// Rows that may still be on their way: work that reads them waits for `there`.
  struct Late {
    ConstView rows;
    Event there = {};
  };
  /// enter(), for later work. Until the compute stream has waited for the event, no other function of the
  /// region may be called.
  Late enter_later(Stream&, Arena&, ConstView x) const;
  /// Gradient of enter(): sums `dx` over the ranks, in place, since the matrices of all ranks had the same
  /// input. With sequence parallelism returns this rank's own rows, which alone have the sum.
  View enter_grad(Stream&, View dx) const;
  /// The same, where `compute` fills the rows of `dx`.
  View enter_grad(Stream&, View dx, const OnRows& compute) const;
  /// Exit: sums `partial` over the ranks, in place. With sequence parallelism returns this rank's own rows,
  /// which alone have the sum.
  View leave(Stream&, View partial) const;
  /// The same, where `compute` fills the rows of `partial`.
  View leave(Stream&, View partial, const OnRows& compute) const;
  /// Gradient of leave(): returns `dy`; with sequence parallelism, the rows of all ranks gathered in the
  /// arena.
  ConstView leave_grad(Stream&, Arena&, ConstView dy) const;

  Communicator& tensor() const { return *tensor_; }
  int rank() const { return tensor_->rank(); }
  int size() const { return tensor_->size(); }
  bool sequence() const { return sequence_ && size() > 1; }
  /// The number of rows of the sequence that this rank holds outside the region, and the place of the first
  /// of them.
  int64_t rows_outside(int64_t s) const;
  int64_t first_row(int64_t s) const { return sequence() ? rank() * rows_outside(s) : 0; }

 private:
  struct Piece {
    int64_t begin, end;  // rows
    Places places;       // with sequence parallelism, the ranks that have them outside
  };
  std::vector<Piece> pieces_of(const ConstView& whole) const;
  View own_rows(const View& whole) const;
  View make_whole(Arena&, const ConstView& x) const;
  ConstView gather(Stream&, Arena&, ConstView x) const;
  void gather(Stream&, View whole, ConstView x) const;
  View sum(Stream&, View partial) const;
  View sum_pieces(Stream&, View partial, const std::vector<Piece>&, const OnRows&) const;

  Communicator* tensor_;
  bool sequence_;
  ExchangeCut cut_ = {};
  std::optional<Stream> beside_;
};

}  // namespace megalith
