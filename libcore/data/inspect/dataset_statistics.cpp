#include "libcore/data/inspect/dataset_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "libcore/base/log.h"

namespace megalith {
namespace {

constexpr int64_t kShort = int64_t{1} << 20;
constexpr int64_t kGreatestId = int64_t{1} << 24;
constexpr int64_t kPiece = int64_t{1} << 20;  // tokens or documents between two progress updates

/// The number of the bin that a length falls in: 0 for length 0, 1 for 1, 2 for 2 and 3, 3 for 4 to 7, …
size_t bin_of(int64_t length) {
  return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(length)));
}

template <class T>
void count(const std::byte* ids, int64_t n, IdCounts& counts) {
  for (int64_t i = 0; i < n; ++i) {
    const auto id = static_cast<int64_t>(load_unaligned<T>(ids, i));
    if (id < 0 || id >= kGreatestId) {
      ++counts.outside;
      continue;
    }
    const auto place = static_cast<size_t>(id);
    if (place >= counts.of_id.size()) counts.of_id.resize(place + 1, 0);
    ++counts.of_id[place];
  }
}

}  // namespace

void LengthCounts::add(int64_t length) {
  ++size_;
  sum_ += length;
  if (length >= kShort) {
    long_.push_back(length);
    sorted_ = false;
    return;
  }
  const auto place = static_cast<size_t>(length);
  if (place >= short_.size()) short_.resize(place + 1, 0);
  ++short_[place];
}

int64_t LengthCounts::at(int64_t place) const {
  for (size_t length = 0; length < short_.size(); ++length) {
    if (place < short_[length]) return static_cast<int64_t>(length);
    place -= short_[length];
  }
  if (!sorted_) std::sort(long_.begin(), long_.end());
  sorted_ = true;
  return long_[static_cast<size_t>(place)];
}

int64_t LengthCounts::quantile(double q) const {
  const auto place = static_cast<int64_t>(std::floor(q * static_cast<double>(size_)));
  return at(std::min(place, size_ - 1));
}

std::vector<LengthCounts::Bin> LengthCounts::bins() const {
  if (size_ == 0) return {};
  const size_t first = bin_of(min());
  std::vector<Bin> bins;
  for (size_t bin = first; bin <= bin_of(max()); ++bin)
    bins.push_back({bin == 0 ? 0 : int64_t{1} << (bin - 1), bin == 0 ? 0 : (int64_t{1} << bin) - 1, 0});
  for (size_t length = 0; length < short_.size(); ++length)
    if (short_[length] > 0) bins[bin_of(static_cast<int64_t>(length)) - first].count += short_[length];
  for (const int64_t length : long_) ++bins[bin_of(length) - first].count;
  return bins;
}

LengthCounts document_lengths(const IndexedDataset& data) {
  LengthCounts lengths;
  Progress progress("document lengths of " + data.prefix(), data.documents(), "documents");
  int64_t sequence = 0;
  for (int64_t document = 0; document < data.documents(); ++document) {
    int64_t tokens = 0;
    for (const int64_t end = data.document_begin(document + 1); sequence < end; ++sequence)
      tokens += data.sequence_length(sequence);
    lengths.add(tokens);
    if (document % kPiece != kPiece - 1) continue;
    data.idx().forget(0, data.idx().size());
    progress.advance_to(document);
  }
  return lengths;
}

int64_t IdCounts::different() const {
  return std::count_if(of_id.begin(), of_id.end(), [](int64_t n) { return n > 0; });
}

std::vector<int64_t> IdCounts::most_frequent(size_t n) const {
  std::vector<int64_t> ids;
  for (size_t id = 0; id < of_id.size(); ++id)
    if (of_id[id] > 0) ids.push_back(static_cast<int64_t>(id));
  const auto times = [&](int64_t id) { return of_id[static_cast<size_t>(id)]; };
  const auto before = [&](int64_t a, int64_t b) {
    return times(a) != times(b) ? times(a) > times(b) : a < b;
  };
  const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(n, ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(), before);
  ids.erase(end, ids.end());
  return ids;
}

IdCounts count_ids(const IndexedDataset& data) {
  IdCounts counts;
  Progress progress("counting ids of " + data.prefix(), data.tokens(), "tokens");
  const auto item = static_cast<int64_t>(size_of(data.dtype()));
  for (int64_t at = 0; at < data.tokens(); at += kPiece) {
    const int64_t n = std::min(kPiece, data.tokens() - at);
    with_type(data.dtype(),
              [&](auto type) { count<decltype(type)>(data.bin().data() + at * item, n, counts); });
    data.bin().forget(static_cast<size_t>(at * item), static_cast<size_t>(n * item));
    progress.advance_to(at + n);
  }
  return counts;
}

}  // namespace megalith
