#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libcore/data/indexed/indexed_dataset.h"

namespace megalith {

/// Counts how often each length occurs, so that all quantiles are exact. Memory: 8 bytes for each possible
/// length below 2^20, and 8 bytes for each document that is longer, of which a dataset cannot have many.
class LengthCounts {
 public:
  void add(int64_t length);

  int64_t size() const { return size_; }
  int64_t sum() const { return sum_; }
  int64_t zeros() const { return size_ == 0 || short_.empty() ? 0 : short_[0]; }
  double mean() const { return static_cast<double>(sum_) / static_cast<double>(size_); }
  int64_t min() const { return at(0); }
  int64_t max() const { return at(size_ - 1); }
  /// The q-quantile, 0 <= q <= 1: the length at index floor(q * size) (at most size - 1) of the sorted
  /// lengths. There must be at least one length.
  int64_t quantile(double q) const;

  /// `count` of the lengths are in [from, to].
  struct Bin {
    int64_t from, to, count;
    bool operator==(const Bin&) const = default;
  };
  /// The bins 0, 1, 2-3, 4-7, …, from the bin that holds min() to the one that holds max().
  std::vector<Bin> bins() const;

 private:
  int64_t at(int64_t place) const;

  std::vector<int64_t> short_;         // how often each length below 2^20 occurs
  mutable std::vector<int64_t> long_;  // each length from 2^20 on, once per occurrence; in order if sorted_
  mutable bool sorted_ = true;
  int64_t size_ = 0, sum_ = 0;
};

/// Counts the lengths of all documents in tokens. Reads the .idx, shows progress, and releases the pages that
/// it has read.
LengthCounts document_lengths(const IndexedDataset& data);

/// How often ids occur. Only ids below 2^24 are counted separately, so that memory is bounded.
struct IdCounts {
  std::vector<int64_t> of_id;  // how often each id occurs, up to the largest id
  int64_t outside = 0;         // number of tokens whose id is negative or at least 2^24

  int64_t different() const;
  /// The n most frequent ids, most frequent first; of equally frequent ids, the smaller one comes first.
  std::vector<int64_t> most_frequent(size_t n) const;
};

/// Reads every token, shows progress, and releases the pages that it has read.
IdCounts count_ids(const IndexedDataset& data);

}  // namespace megalith
