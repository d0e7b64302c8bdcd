#include "libcore/evaluate/metrics.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/python_random.h"
#include "libcore/base/utf8.h"
#include "libcore/ops/cpu/threads.h"
#include "libcore/text/unicode/python_text.h"

namespace megalith {
namespace {

double standard_deviation(std::span<const double> numbers) {
  const double mean = mean_of(numbers);
  double sum = 0;
  for (const double number : numbers) sum += (number - mean) * (number - mean);
  return std::sqrt(sum / static_cast<double>(numbers.size() - 1));
}

Metric accuracy(const char* name, std::span<const double> right) {
  return {.name = name, .value = mean_of(right), .error = error_of_mean(right)};
}

std::vector<Metric> choice_metrics(std::span<const TaskItem> items,
                                   std::span<const std::vector<Likelihood>> likelihoods) {
  std::vector<double> right, right_by_length;
  for (size_t i = 0; i < items.size(); ++i) {
    right.push_back(likeliest_choice(likelihoods[i]) == items[i].answer ? 1 : 0);
    right_by_length.push_back(likeliest_by_length(items[i], likelihoods[i]) == items[i].answer ? 1 : 0);
  }
  return {accuracy("acc", right), accuracy("acc_norm", right_by_length)};
}

std::vector<Metric> last_word_metrics(std::span<const std::vector<Likelihood>> likelihoods) {
  std::vector<double> right, logs;
  for (const std::vector<Likelihood>& one : likelihoods) {
    right.push_back(one[0].greedy ? 1 : 0);
    logs.push_back(one[0].log);
  }
  return {accuracy("acc", right),
          {.name = "perplexity",
           .value = std::exp(-mean_of(logs)),
           .error = error_of_perplexity(logs),
           .higher_is_better = false}};
}

std::vector<Metric> text_metrics(std::span<const TaskItem> items,
                                 std::span<const std::vector<Likelihood>> likelihoods) {
  double log = 0, words = 0, bytes = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string& text = items[i].continuations[0];
    log += likelihoods[i][0].log;
    words += static_cast<double>(blank_separated_parts(text));
    bytes += static_cast<double>(text.size());
  }
  const auto figure = [](const char* name, double value) {
    return Metric{.name = name, .value = value, .higher_is_better = false};
  };
  return {figure("bits_per_byte", -log / bytes / std::log(2.0)),
          figure("byte_perplexity", std::exp(-log / bytes)),
          figure("word_perplexity", std::exp(-log / words))};
}

/// Sets each of `perplexities` to that of as many numbers as there are, drawn with replacement.
void resample(std::span<const double> numbers, uint64_t seed, std::span<double> perplexities) {
  PythonRandom random(seed);
  for (double& perplexity : perplexities) {
    double sum = 0;
    for (size_t i = 0; i < numbers.size(); ++i) sum += numbers[random.choice(numbers.size())];
    perplexity = std::exp(-sum / static_cast<double>(numbers.size()));
  }
}

}  // namespace

size_t likeliest_choice(std::span<const Likelihood> choices) {
  return static_cast<size_t>(std::ranges::max_element(choices, {}, &Likelihood::log) - choices.begin());
}

size_t likeliest_by_length(const TaskItem& item, std::span<const Likelihood> choices) {
  std::vector<double> by_length;
  for (size_t i = 0; i < choices.size(); ++i)
    by_length.push_back(choices[i].log / static_cast<double>(count_code_points(item.continuations[i])));
  return static_cast<size_t>(std::ranges::max_element(by_length) - by_length.begin());
}

std::vector<Metric> task_metrics(TaskKind kind, std::span<const TaskItem> items,
                                 std::span<const std::vector<Likelihood>> likelihoods) {
  if (kind == TaskKind::kChoices) return choice_metrics(items, likelihoods);
  if (kind == TaskKind::kLastWord) return last_word_metrics(likelihoods);
  return text_metrics(items, likelihoods);
}

double mean_of(std::span<const double> numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number;
  return sum / static_cast<double>(numbers.size());
}

std::optional<double> error_of_mean(std::span<const double> numbers) {
  if (numbers.size() < 2) return std::nullopt;
  return standard_deviation(numbers) / std::sqrt(static_cast<double>(numbers.size()));
}

std::optional<double> error_of_perplexity(std::span<const double> numbers) {
  constexpr size_t kSeeds = 100, kSamples = 1000;  // of each seed
  if (numbers.size() < 2) return std::nullopt;
  std::vector<double> perplexities(kSeeds * kSamples);
  cpu::for_each_block(kSeeds, [&](int64_t block) {
    const auto seed = static_cast<size_t>(block);
    resample(numbers, seed, std::span(perplexities).subspan(seed * kSamples, kSamples));
  });
  return standard_deviation(perplexities);
}

}  // namespace megalith
