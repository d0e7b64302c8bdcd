#include "libcore/train/objective/preference.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

/// log(1 + e^x), written so that e^x cannot overflow.
double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}
double sigmoid(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

}  // namespace

PairJudgement judge_pair(const PreferenceOptions& options, const PairLosses& losses) {
  const double gain =
      (losses.reference_chosen - losses.chosen) - (losses.reference_rejected - losses.rejected);
  const double h = options.beta * gain, wrong = options.smoothing;
  return {.loss = (1 - wrong) * softplus(-h) + wrong * softplus(h),
          .weight = options.beta * ((1 - wrong) * sigmoid(-h) - wrong * sigmoid(h))};
}

Preference::Preference(const PreferenceOptions& options, const All& all, const LossesOf& losses_of)
    : options_(options) {
  const auto start = std::chrono::steady_clock::now();
  const auto left = [&] { return all.count - static_cast<int64_t>(reference_.size()); };
  Progress progress("reference", all.count, "answers");
  while (left() > 0) {
    std::vector<double> losses = losses_of(all.examples, all.count - left());
    losses.resize(std::min(losses.size(), static_cast<size_t>(left())));
    reference_.insert(reference_.end(), losses.begin(), losses.end());
    progress.advance_to(all.count - left());
  }
  log("reference: log probabilities of ", format_count(all.count), " answers in ",
      format_duration(seconds_since(start)));
}

Judgement Preference::operator()(const SampleSource& source, int64_t first,
                                 std::span<const double> losses) const {
  Judgement out{.loss = 0, .weights = std::vector<double>(losses.size(), 0.0)};
  int64_t pairs = 0;
  for (size_t i = 0; i + 1 < losses.size(); i += 2) {
    const int64_t sample = first + static_cast<int64_t>(i), example = source.example(sample);
    if (example < 0) continue;
    const PairJudgement judged = judge_pair(
        options_, {.chosen = losses[i],
                   .rejected = losses[i + 1],
                   .reference_chosen = reference_[static_cast<size_t>(example)],
                   .reference_rejected = reference_[static_cast<size_t>(source.example(sample + 1))]});
    out.loss += judged.loss;
    out.weights[i] = judged.weight;
    out.weights[i + 1] = -judged.weight;
    ++pairs;
  }
  if (pairs == 0) return out;
  out.loss /= static_cast<double>(pairs);
  for (double& weight : out.weights) weight /= static_cast<double>(pairs);
  return out;
}

}  // namespace megalith
