#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace megalith {

/// The order in which a blend takes samples from its datasets, made a piece at a time. Each sample comes from
/// the dataset that is furthest behind its share; if several are equally far behind, from the first. Equal to
/// Megatron's build_blending_indices and build_exhaustive_blending_indices (helpers.cpp) in every bit: what
/// is compared is the double weight * max(sample, 1) - taken, rounded after each of the two operations.
///
/// Megatron compares all datasets for each sample. Here a window of samples is decided at once for a few of
/// the datasets, which is exact: while a dataset is not taken from, its double never falls, so in the next n
/// samples none is taken from a dataset that is then still behind the n-th of now. Datasets of equal weight
/// take turns, so only one of each weight is looked at.
class BlendOrder {
 public:
  /// `weights` add up to 1; there is no end.
  static BlendOrder by_weights(std::span<const double> weights);
  /// Weights are the datasets' sizes; the blend ends when every sample of every dataset was taken once.
  static BlendOrder exhaustive(std::span<const int64_t> sizes);

  /// The next samples: for each its dataset, and its number there. Both spans have the same size. kInternal
  /// for more samples than the blend has.
  void next(std::span<int16_t> dataset, std::span<int64_t> sample);
  /// Samples taken from each dataset so far.
  std::vector<int64_t> taken() const;

 private:
  /// Datasets of one weight, in their order. They are taken from in turn.
  struct Class {
    uint32_t begin, count = 0;  // in members_
    uint32_t turn = 0;          // whose turn it is, of these
    int64_t taken = 0;          // from each of them, and one more from those before `turn`
    int64_t size = -1;          // samples of each; -1: no end
  };
  /// One entry for each class that is looked at.
  struct Pool {
    std::vector<double> weight, taken;  // infinite in `taken`: the class is used up
    std::vector<int16_t> first;         // the dataset whose turn it is
    std::vector<uint32_t> number;       // of the class, and in `above` the entry in the pool that is narrowed
    std::vector<uint32_t> above;
    size_t size() const { return weight.size(); }
    void fill(const Pool& pool, std::span<const uint32_t> entries);
  };
  /// Where the samples of a call of next() go.
  struct Output {
    std::span<int16_t> dataset;
    std::span<int64_t> sample;
    size_t done = 0;
  };

  BlendOrder(std::span<const double> weights, std::span<const int64_t> sizes);
  void run(size_t depth, size_t samples, Output& out);
  void run_flat(Pool& pool, size_t samples, Output& out);
  double draw_bound(const Pool& pool);
  size_t narrow(size_t depth, size_t samples);
  template <class Chosen>
  size_t select(size_t n, const Chosen& chosen);
  void take(Pool& pool, size_t entry, Output& out);
  void give_back(const Pool& narrowed, Pool& pool) const;
  void drop_used_up();

  size_t datasets_;
  std::vector<Class> classes_;
  std::vector<int16_t> members_;  // datasets, class by class
  std::vector<Pool> pools_;       // pools_[d + 1] has what pools_[d] was narrowed to
  std::vector<double> behind_;    // reused by all calls, as selected_
  std::vector<uint32_t> selected_;
  int64_t at_ = 0;    // the next sample
  int64_t end_ = -1;  // -1: no end
};

}  // namespace megalith
