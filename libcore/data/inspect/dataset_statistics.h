#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libcore/data/indexed/indexed_dataset.h"

namespace megalith {

/// How many lengths there are of each value; any quantile is exact. Memory: 8 bytes for each length up to
/// 2^20, and for each of those beyond, of which a dataset cannot have many.
class LengthCounts {
 public:
  void add(int64_t length);

  int64_t size() const { return size_; }
  int64_t sum() const { return sum_; }
  int64_t zeros() const { return size_ == 0 || short_.empty() ? 0 : short_[0]; }
  double mean() const { return static_cast<double>(sum_) / static_cast<double>(size_); }
  int64_t min() const { return at(0); }
  int64_t max() const { return at(size_ - 1); }
  /// The length at place floor(q * size) of all in order, 0 <= q <= 1; only when there is one.
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

  std::vector<int64_t> short_;         // how often each length below 2^20
  mutable std::vector<int64_t> long_;  // the others; in order when sorted_
  mutable bool sorted_ = true;
  int64_t size_ = 0, sum_ = 0;
};

/// Tokens of each document. Reads the .idx, with progress; its pages are given back as it goes.
LengthCounts document_lengths(const IndexedDataset& data);

/// How often ids occur. Only ids below 2^24 are told apart, so that memory is bounded.
struct IdCounts {
  std::vector<int64_t> of_id;  // up to the largest id
  int64_t outside = 0;         // negative ones and those from 2^24 on

  int64_t different() const;
  /// The n most frequent ids; ties: the smaller first.
  std::vector<int64_t> most_frequent(size_t n) const;
};

/// Reads every token, with progress; pages are given back as it goes.
IdCounts count_ids(const IndexedDataset& data);

}  // namespace megalith
