#include "libcore/parallel/region.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/tensor/span_log.h"

namespace megalith {

int ExchangeCut::pieces(size_t bytes, int ranks) const {
  const size_t least = std::max<size_t>(least_bytes * static_cast<size_t>(ranks), 1);
  return static_cast<int>(std::clamp<size_t>(bytes / least, 1, static_cast<size_t>(most)));
}

// ---- entry

ConstView Region::enter(Stream& stream, Arena& arena, ConstView x) const {
  return gather(stream, arena, x);
}

void Region::enter(Stream& stream, Arena& arena, ConstView x, const OnRowsOf& use) const {
  if (!sequence()) return use(x, 0, x.shape[0]);
  const View whole = make_whole(arena, x);
  const std::vector<Piece> pieces = pieces_of(whole);
  if (pieces.size() == 1) {
    gather(stream, whole, x);
    return use(whole, 0, whole.shape[0]);
  }
  Stream beside = *beside_;
  beside.wait(stream.record());
  beside.copy(own_rows(whole), x);
  std::vector<Event> there;
  for (const Piece& piece : pieces) {
    const StreamSpan span(beside, "gather rows ", piece.begin, " to ", piece.end);
    tensor_->gather_parts(beside, whole, piece.places);
    there.push_back(beside.record());
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    stream.wait(there[i]);
    const StreamSpan span(stream, "product of rows ", pieces[i].begin, " to ", pieces[i].end);
    use(whole, pieces[i].begin, pieces[i].end);
  }
}

Region::Late Region::enter_later(Stream& stream, Arena& arena, ConstView x) const {
  if (!sequence()) return {x};
  const View whole = make_whole(arena, x);
  const bool apart = pieces_of(whole).size() > 1;
  Stream on = apart ? *beside_ : stream;
  if (apart) on.wait(stream.record());
  gather(on, whole, x);
  return {whole, apart ? on.record() : Event{}};
}

View Region::enter_grad(Stream& stream, View dx) const {
  return sum(stream, dx);
}

View Region::enter_grad(Stream& stream, View dx, const OnRows& compute) const {
  return sum_pieces(stream, dx, pieces_of(dx), compute);
}

// ---- exit

View Region::leave(Stream& stream, View partial) const {
  return sum(stream, partial);
}

View Region::leave(Stream& stream, View partial, const OnRows& compute) const {
  return sum_pieces(stream, partial, pieces_of(partial), compute);
}

ConstView Region::leave_grad(Stream& stream, Arena& arena, ConstView dy) const {
  return gather(stream, arena, dy);
}

// ---- parts

int64_t Region::rows_outside(int64_t s) const {
  if (!sequence()) return s;
  if (s % size() != 0)
    fail(ErrorKind::kInternal, "a sequence of ", s, " cannot be sharded over ", size(),
         " tensor-parallel ranks");
  return s / size();
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

std::vector<Region::Piece> Region::pieces_of(const ConstView& whole) const {
  const int64_t s = whole.shape[0], rows = sequence() ? rows_outside(s) : 1, places = s / rows;
  const int64_t count =
      beside_ && size() > 1 ? std::min<int64_t>(cut_.pieces(whole.bytes(), size()), places) : 1;
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = places * i / count, last = places * (i + 1) / count;
    pieces.push_back({.begin = first * rows,
                      .end = last * rows,
                      .places = {static_cast<int>(first), static_cast<int>(last)}});
  }
  return pieces;
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

View Region::sum_pieces(Stream& stream, View partial, const std::vector<Piece>& pieces,
                        const OnRows& compute) const {
  if (pieces.size() == 1) {
    compute(0, partial.shape[0]);
    return sum(stream, partial);
  }
  Stream beside = *beside_;
  for (const Piece& piece : pieces) {
    {
      const StreamSpan span(stream, "product of rows ", piece.begin, " to ", piece.end);
      compute(piece.begin, piece.end);
    }
    beside.wait(stream.record());
    const StreamSpan span(beside, "sum rows ", piece.begin, " to ", piece.end);
    if (sequence())
      tensor_->reduce_parts(beside, partial, Reduce::kSum, piece.places);
    else
      tensor_->all_reduce(beside, partial.rows(piece.begin, piece.end), Reduce::kSum);
  }
  stream.wait(beside.record());
  return own_rows(partial);
}

}  // namespace megalith
