#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libcore/data/indexed/indexed_dataset.h"

namespace megalith {

/// How often each length occurs, so that any quantile is exact. Memory: 8 bytes for each length up to 2^20,
/// and for each document that is longer, of which a dataset cannot have many.
class LengthCounts {
 public:
  void add(int64_t length);

  int64_t size() const { return size_; }
  int64_t sum() const { return sum_; }
  int64_t zeros() const { return size_ == 0 || short_.empty() ? 0 : short_[0]; }
  double mean() const { return static_cast<double>(sum_) / static_cast<double>(size_); }
  int64_t min() const { return at(0); }
  int64_t max() const { return at(size_ - 1); }
  /// The length at place floor(q * size) when all are sorted, 0 <= q <= 1; there must be at least one.
  int64_t quantile(double q) const;

  /// Lengths in [from, to] occur `count` times.
  struct Bin {
    int64_t from, to, count;
    bool operator==(const Bin&) const = default;
  };
  /// Bins 0, 1, 2-3, 4-7, … from that of min() to that of max().
  std::vector<Bin> bins() const;

 private:
  int64_t at(int64_t place) const;

  std::vector<int64_t> short_;         // how often each length below 2^20 occurs
  mutable std::vector<int64_t> long_;  // the other lengths; sorted if sorted_
  mutable bool sorted_ = true;
  int64_t size_ = 0, sum_ = 0;
};

/// The number of tokens of each document. Reads the .idx, with progress, and releases its pages as it
/// proceeds.
LengthCounts document_lengths(const IndexedDataset& data);

/// How often ids occur. Only ids below 2^24 are counted separately, so that memory is bounded.
struct IdCounts {
  std::vector<int64_t> of_id;  // up to the largest id
  int64_t outside = 0;         // negative ids and those from 2^24 on

  int64_t different() const;
  /// The n most frequent ids; of equally frequent ones the smaller first.
  std::vector<int64_t> most_frequent(size_t n) const;
};

/// Reads every token, with progress, and releases pages as it proceeds.
IdCounts count_ids(const IndexedDataset& data);

}  // namespace megalith
