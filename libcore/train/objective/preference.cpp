#include "libcore/train/objective/preference.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/train/data/data_set.h"

namespace megalith {
namespace {

/// log(1 + e^x), written so that e^x cannot overflow.
double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}
double sigmoid(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

/// `examples` with those of `numbers` alone. What fills up a step behind them is what follows the last of
/// all.
SampleSource only(const SampleSource& examples, int64_t count, const std::vector<int64_t>& numbers) {
  const auto number = [&numbers, count](int64_t i) {
    const auto size = static_cast<int64_t>(numbers.size());
    return i < size ? numbers[static_cast<size_t>(i)] : count + (i - size);
  };
  SampleSource source(
      [&examples, number](int64_t i, const SampleView& view) { examples.read(number(i), view); });
  const auto mapped = [number](const std::function<int64_t(int64_t)>& of) {
    return of ? [&of, number](int64_t i) { return of(number(i)); } : std::function<int64_t(int64_t)>();
  };
  source.length = mapped(examples.length);
  source.counted = mapped(examples.counted);
  source.example = mapped(examples.example);
  return source;
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
    : options_(options),
      reference_(static_cast<size_t>(all.count), std::numeric_limits<double>::quiet_NaN()) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<int64_t> reached = all.reached;
  if (reached.empty()) {
    reached.resize(static_cast<size_t>(all.count));
    std::iota(reached.begin(), reached.end(), 0);
  }
  const SampleSource source = only(all.examples, all.count, reached);
  const auto count = static_cast<int64_t>(reached.size());
  Progress progress("reference", count, "answers");
  for (size_t done = 0; done < reached.size();) {
    const std::vector<double> losses = losses_of(source, static_cast<int64_t>(done));
    for (size_t i = 0; i < losses.size() && done < reached.size(); ++i, ++done)
      reference_[static_cast<size_t>(reached[done])] = losses[i];
    progress.advance_to(static_cast<int64_t>(done));
  }
  log("reference: log probabilities of ", format_count(count), " answers in ",
      format_duration(seconds_since(start)));
}

double Preference::reference(int64_t example) const {
  const double loss = reference_[static_cast<size_t>(example)];
  if (std::isnan(loss))
    fail(ErrorKind::kInternal, "answer ", example, " has no log probability under the reference");
  return loss;
}

Judgement Preference::operator()(const SampleSource& source, int64_t first,
                                 std::span<const double> losses) const {
  Judgement out{.loss = 0, .weights = std::vector<double>(losses.size(), 0.0)};
  int64_t pairs = 0;
  for (size_t i = 0; i + 1 < losses.size(); i += 2) {
    const int64_t sample = first + static_cast<int64_t>(i), example = source.example(sample);
    if (example < 0) continue;
    const PairJudgement judged =
        judge_pair(options_, {.chosen = losses[i],
                              .rejected = losses[i + 1],
                              .reference_chosen = reference(example),
                              .reference_rejected = reference(source.example(sample + 1))});
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
