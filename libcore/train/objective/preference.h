#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "libcore/train/objective/judgement.h"

namespace megalith {

/// Direct preference optimization (Rafailov et al. 2023) over pairs of answers: samples 2 k and 2 k + 1 are
/// the chosen and the rejected answer to one question.
struct PreferenceOptions {
  double beta = 0.1;
  double smoothing = 0;  // share of the pairs assumed to be swapped (cDPO)
};

/// The losses of one pair's answers, under the model and under the reference.
struct PairLosses {
  double chosen, rejected;                      // sums of an answer's token losses, -log p
  double reference_chosen, reference_rejected;  // the same sums under the reference
};
struct PairJudgement {
  double loss, weight;  // weight = d(loss) / d(chosen) = -d(loss) / d(rejected)
};
/// The DPO loss of a pair, with label smoothing. Without smoothing it is -log sigmoid(beta * (log(p / p_ref)
/// of the chosen answer - log(p / p_ref) of the rejected answer)).
PairJudgement judge_pair(const PreferenceOptions& options, const PairLosses& losses);

/// A Judge that minimises the mean loss of the pairs. Holds the loss of every example under the reference
/// model.
class Preference {
 public:
  /// Returns the losses of one step's samples, which begin with number `first` of the source.
  using LossesOf = std::function<std::vector<double>(const SampleSource&, int64_t first)>;
  /// All examples of the data. Sample number i of this source is example i.
  struct All {
    const SampleSource& examples;
    int64_t count;
    std::vector<int64_t> reached = {};  // the examples that are judged, ascending; empty: all
  };
  /// Computes the reference losses by calling losses_of for the examples that are reached, so the parameters
  /// must still have the reference's values.
  Preference(const PreferenceOptions& options, const All& all, const LossesOf& losses_of);

  /// SampleSource::example of `source` gives each sample's example. Pairs without examples, which fill up a
  /// step, do not count. kInternal for an example that was not to be reached.
  Judgement operator()(const SampleSource& source, int64_t first, std::span<const double> losses) const;

 private:
  PreferenceOptions options_;
  double reference(int64_t example) const;

  std::vector<double> reference_;  // loss of each example under the reference; NaN where it is not known
};

}  // namespace megalith
