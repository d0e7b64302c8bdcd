#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "libcore/train/objective/judgement.h"

namespace megalith {

/// Direct preference optimization (Rafailov et al. 2023) of pairs of answers: samples 2 k and 2 k + 1 are the
/// chosen and the rejected answer to one question.
struct PreferenceOptions {
  double beta = 0.1;
  double smoothing = 0;  // share of the pairs that are taken to be the wrong way round (cDPO)
};

/// How much a model prefers each chosen answer, beyond what the reference does.
struct PairLosses {
  double chosen, rejected;                      // sums of an answer's token losses, -log p
  double reference_chosen, reference_rejected;  // of the reference
};
struct PairJudgement {
  double loss, weight;  // weight: d(loss) / d(chosen), and -d(loss) / d(rejected)
};
/// -log sigmoid(beta * (log p/p_ref of the chosen - that of the rejected)), smoothed.
PairJudgement judge_pair(const PreferenceOptions& options, const PairLosses& losses);

/// A Judge of pairs: their mean loss. Holds the reference's losses of every example.
class Preference {
 public:
  /// The losses of a step's samples from number `first` of a source on.
  using LossesOf = std::function<std::vector<double>(const SampleSource&, int64_t first)>;
  /// The examples that pairs are made of, each a sample, in the order of their numbers.
  struct All {
    const SampleSource& examples;
    int64_t count;
  };
  /// Asks for the losses of all of them, which are the reference's as long as the parameters have its values.
  Preference(const PreferenceOptions& options, const All& all, const LossesOf& losses_of);

  /// SampleSource::example of the source says which examples the samples are. Pairs without examples, which
  /// fill up a step, count nothing.
  Judgement operator()(const SampleSource& source, int64_t first, std::span<const double> losses) const;

 private:
  PreferenceOptions options_;
  std::vector<double> reference_;  // of each example
};

}  // namespace megalith
