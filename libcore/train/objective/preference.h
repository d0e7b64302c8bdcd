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
  double loss, weight;  // weight: d(loss) / d(chosen), and -d(loss) / d(rejected)
};
/// -log sigmoid(beta * (log(p / p_ref) of the chosen answer - log(p / p_ref) of the rejected one)), with
/// label smoothing.
PairJudgement judge_pair(const PreferenceOptions& options, const PairLosses& losses);

/// A Judge for pairs, which minimises their mean loss. Holds the reference's loss of every example.
class Preference {
 public:
  /// Returns the losses of one step's samples, which begin with number `first` of the source.
  using LossesOf = std::function<std::vector<double>(const SampleSource&, int64_t first)>;
  /// All examples of the pairs, in order; each example is one sample.
  struct All {
    const SampleSource& examples;
    int64_t count;
  };
  /// Calls losses_of for all examples: the parameters must still have the reference's values.
  Preference(const PreferenceOptions& options, const All& all, const LossesOf& losses_of);

  /// The source's SampleSource::example maps samples to examples. Pairs without examples, which fill up a
  /// step, do not count.
  Judgement operator()(const SampleSource& source, int64_t first, std::span<const double> losses) const;

 private:
  PreferenceOptions options_;
  std::vector<double> reference_;  // for each example
};

}  // namespace megalith
