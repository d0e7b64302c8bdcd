#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "libcore/parallel/communicator.h"
#include "libcore/parallel/exchange_cut.h"
#include "libcore/tensor/arena.h"

namespace megalith {

/// The entry and exit of a tensor-parallel layer (f and g of Shoeybi et al. 2019; with sequence parallelism
/// those of Korthikanti et al. 2022). Rows are [s, b, h]; with sequence parallelism a rank holds s/tp of them
/// outside the region and all of them inside.
///
/// Where rows are cut, the pieces are exchanged on a stream of the region's own, beside the compute stream.
/// Before a function that returns no Late and no Exit returns, the compute stream waits for them. Without
/// sequence parallelism a piece is a range of rows of all ranks; with it, the rows of consecutive ranks.
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

  /// Rows that may still be on their way.
  struct Late {
    struct Part {
      int64_t begin, end;  // rows
      Event there = {};    // work that reads them waits for it
    };
    ConstView rows;
    std::vector<Part> parts;  // in the order of rows

    /// Lets the stream wait for all rows.
    void wait(Stream&) const;
    /// Calls `use` for each part, as soon as the stream may read it.
    void each(Stream&, const OnRows& use) const;
  };

  /// Entry: returns `x`; with sequence parallelism, the rows of all ranks gathered in the arena.
  ConstView enter(Stream&, Arena&, ConstView x) const;
  /// Entry of a product: calls `use` for each piece in the order of rows, as soon as the compute stream may
  /// read it. The whole tensor is in the arena.
  void enter(Stream&, Arena&, ConstView x, const OnRowsOf& use) const;
  /// enter(), piece by piece: each is a part. Until the compute stream has waited for the last part, only
  /// enter_later(), enter_by_piece() and Exit may be called, and calls on tensor() follow join().
  Late enter_by_piece(Stream&, Arena&, ConstView x) const;
  /// enter() in one part, for later work, with the same rule.
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
  /// The same, as enter_by_piece().
  Late leave_grad_by_piece(Stream&, Arena&, ConstView dy) const;

  /// leave() or enter_grad() of rows that are computed from first to last. Must not outlive the region.
  class Exit {
   public:
    Exit(const Region&, View partial);
    const std::vector<RowPiece>& pieces() const { return pieces_; }
    /// The rows before `end` are computed by what is enqueued on the stream: sums the pieces that are
    /// complete, but a single one only in finish().
    void computed(Stream&, int64_t end);
    /// The result of leave().
    View finish(Stream&);

   private:
    const Region& region_;
    View partial_;
    std::vector<RowPiece> pieces_;
    size_t summed_ = 0;  // pieces
  };

  /// Before a call on tensor() between the exchanges of `whole`: lets the stream wait for those that have
  /// begun, since a communicator is used by one stream at a time.
  void join(Stream&, ConstView whole) const;

  Communicator& tensor() const { return *tensor_; }
  int rank() const { return tensor_->rank(); }
  int size() const { return tensor_->size(); }
  bool sequence() const { return sequence_ && size() > 1; }
  /// The number of rows of the sequence that this rank holds outside the region, and the place of the first
  /// of them.
  int64_t rows_outside(int64_t s) const;
  int64_t first_row(int64_t s) const { return sequence() ? rank() * rows_outside(s) : 0; }

 private:
  std::vector<RowPiece> pieces_of(const ConstView& whole) const;
  Event exchanged() const;  // all that has begun beside the compute stream
  View own_rows(const View& whole) const;
  View make_whole(Arena&, const ConstView& x) const;
  ConstView gather(Stream&, Arena&, ConstView x) const;
  void gather(Stream&, View whole, ConstView x) const;
  Late gather_pieces(Stream&, Arena&, ConstView x) const;
  View sum(Stream&, View partial) const;
  void sum_piece(Stream&, View partial, const RowPiece&) const;
  View sum_pieces(Stream&, View partial, const OnRows& compute) const;

  Communicator* tensor_;
  bool sequence_;
  ExchangeCut cut_ = {};
  std::optional<Stream> beside_;
};

}  // namespace megalith
