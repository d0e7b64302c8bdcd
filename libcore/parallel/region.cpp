#include "libcore/parallel/region.h"

#include "libcore/base/error.h"
#include "libcore/tensor/span_log.h"

namespace megalith {

// ---- rows that are on their way

void Region::Late::wait(Stream& stream) const {
  for (const Part& part : parts) stream.wait(part.there);
}

void Region::Late::each(Stream& stream, const OnRows& use) const {
  if (parts.size() == 1) {
    stream.wait(parts[0].there);
    return use(parts[0].begin, parts[0].end);
  }
  for (const Part& part : parts) {
    stream.wait(part.there);
    const StreamSpan span(stream, "product of rows ", part.begin, " to ", part.end);
    use(part.begin, part.end);
  }
}

// ---- entry

ConstView Region::enter(Stream& stream, Arena& arena, ConstView x) const {
  return gather(stream, arena, x);
}

void Region::enter(Stream& stream, Arena& arena, ConstView x, const OnRowsOf& use) const {
  const Late late = gather_pieces(stream, arena, x);
  late.each(stream, [&](int64_t begin, int64_t end) { use(late.rows, begin, end); });
}

Region::Late Region::enter_by_piece(Stream& stream, Arena& arena, ConstView x) const {
  return gather_pieces(stream, arena, x);
}

Region::Late Region::enter_later(Stream& stream, Arena& arena, ConstView x) const {
  if (!sequence()) return {x, {{0, x.shape[0]}}};
  const View whole = make_whole(arena, x);
  const bool apart = pieces_of(whole).size() > 1;
  Stream on = apart ? *beside_ : stream;
  if (apart) on.wait(stream.record());
  gather(on, whole, x);
  return {whole, {{0, whole.shape[0], apart ? on.record() : Event{}}}};
}

View Region::enter_grad(Stream& stream, View dx) const {
  return sum(stream, dx);
}

View Region::enter_grad(Stream& stream, View dx, const OnRows& compute) const {
  return sum_pieces(stream, dx, compute);
}

// ---- exit

View Region::leave(Stream& stream, View partial) const {
  return sum(stream, partial);
}

View Region::leave(Stream& stream, View partial, const OnRows& compute) const {
  return sum_pieces(stream, partial, compute);
}

ConstView Region::leave_grad(Stream& stream, Arena& arena, ConstView dy) const {
  return gather(stream, arena, dy);
}

Region::Late Region::leave_grad_by_piece(Stream& stream, Arena& arena, ConstView dy) const {
  return gather_pieces(stream, arena, dy);
}

Region::Exit::Exit(const Region& region, View partial)
    : region_(region), partial_(partial), pieces_(region.pieces_of(partial)) {}

void Region::Exit::computed(Stream& stream, int64_t end) {
  if (pieces_.size() == 1) return;
  for (; summed_ < pieces_.size() && pieces_[summed_].end <= end; ++summed_)
    region_.sum_piece(stream, partial_, pieces_[summed_]);
}

View Region::Exit::finish(Stream& stream) {
  if (pieces_.size() == 1) return region_.sum(stream, partial_);
  computed(stream, partial_.shape[0]);
  stream.wait(region_.exchanged());
  return region_.own_rows(partial_);
}

void Region::join(Stream& stream, ConstView whole) const {
  if (pieces_of(whole).size() > 1) stream.wait(exchanged());
}

// ---- parts

int64_t Region::rows_outside(int64_t s) const {
  if (!sequence()) return s;
  if (s % size() != 0)
    fail(ErrorKind::kInternal, "a sequence of ", s, " cannot be sharded over ", size(),
         " tensor-parallel ranks");
  return s / size();
}

Event Region::exchanged() const {
  Stream beside = *beside_;
  return beside.record();
}

View Region::own_rows(const View& whole) const {
  if (!sequence()) return whole;
  const int64_t rows = rows_outside(whole.shape[0]);
  return whole.rows(rank() * rows, (rank() + 1) * rows);
}

View Region::make_whole(Arena& arena, const ConstView& x) const {
  Shape shape = x.shape;
  shape[0] *= size();
  return arena.make(x.dtype, shape, "gathered sequence");
}

std::vector<RowPiece> Region::pieces_of(const ConstView& whole) const {
  rows_outside(whole.shape[0]);  // fails if they cannot be sharded
  if (!beside_) return {{.begin = 0, .end = whole.shape[0]}};
  return cut_.pieces(
      {.rows = whole.shape[0], .bytes = whole.bytes(), .ranks = size(), .sequence = sequence()});
}

ConstView Region::gather(Stream& stream, Arena& arena, ConstView x) const {
  if (!sequence()) return x;
  const View whole = make_whole(arena, x);
  gather(stream, whole, x);
  return whole;
}

void Region::gather(Stream& stream, View whole, ConstView x) const {
  const StreamSpan span(stream, "tensor all_gather");
  tensor_->all_gather(stream, whole, x);
}

Region::Late Region::gather_pieces(Stream& stream, Arena& arena, ConstView x) const {
  if (!sequence()) return {x, {{0, x.shape[0]}}};
  const View whole = make_whole(arena, x);
  const std::vector<RowPiece> pieces = pieces_of(whole);
  if (pieces.size() == 1) {
    gather(stream, whole, x);
    return {whole, {{0, whole.shape[0]}}};
  }
  Stream beside = *beside_;
  beside.wait(stream.record());
  beside.copy(own_rows(whole), x);
  Late late{whole, {}};
  for (const RowPiece& piece : pieces) {
    const StreamSpan span(beside, "gather rows ", piece.begin, " to ", piece.end);
    tensor_->gather_parts(beside, whole, piece.places);
    late.parts.push_back({piece.begin, piece.end, beside.record()});
  }
  return late;
}

View Region::sum(Stream& stream, View partial) const {
  if (size() == 1) return partial;
  const StreamSpan span(stream, sequence() ? "tensor reduce_scatter" : "tensor all_reduce");
  const View own = own_rows(partial);
  if (sequence())
    tensor_->reduce_scatter(stream, own, partial, Reduce::kSum);
  else
    tensor_->all_reduce(stream, partial, Reduce::kSum);
  return own;
}

/// Sums rows that the stream computes, beside it.
void Region::sum_piece(Stream& stream, View partial, const RowPiece& piece) const {
  Stream beside = *beside_;
  beside.wait(stream.record());
  const StreamSpan span(beside, "sum rows ", piece.begin, " to ", piece.end);
  if (sequence())
    tensor_->reduce_parts(beside, partial, Reduce::kSum, piece.places);
  else
    tensor_->all_reduce(beside, partial.rows(piece.begin, piece.end), Reduce::kSum);
}

View Region::sum_pieces(Stream& stream, View partial, const OnRows& compute) const {
  Exit exit(*this, partial);
  if (exit.pieces().size() == 1) {
    compute(0, partial.shape[0]);
    return exit.finish(stream);
  }
  for (const RowPiece& piece : exit.pieces()) {
    {
      const StreamSpan span(stream, "product of rows ", piece.begin, " to ", piece.end);
      compute(piece.begin, piece.end);
    }
    exit.computed(stream, piece.end);
  }
  return exit.finish(stream);
}

}  // namespace megalith
