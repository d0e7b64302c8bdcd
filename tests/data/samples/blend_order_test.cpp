#include "libcore/data/samples/blend_order.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

using Weights = std::vector<double>;

/// The datasets of the first `size` samples, found by comparing all datasets for each sample, as the loops of
/// helpers.cpp do. `sizes`: what each dataset has; empty: no end.
std::vector<int16_t> compared(const Weights& weights, int64_t size, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> taken(weights.size(), 0);
  std::vector<int16_t> order;
  for (int64_t s = 0; s < size; ++s) {
    const double samples = std::max(static_cast<double>(s), 1.0);
    double most = std::numeric_limits<double>::lowest();
    size_t best = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (!sizes.empty() && taken[i] == sizes[i]) continue;
      const double behind = weights[i] * samples - static_cast<double>(taken[i]);
      if (behind > most) most = behind, best = i;
    }
    ++taken[best];
    order.push_back(static_cast<int16_t>(best));
  }
  return order;
}

/// Takes `size` samples in calls of different lengths, and checks the numbers of the samples.
std::vector<int16_t> ordered(BlendOrder order, int64_t size, size_t datasets) {
  std::vector<int16_t> dataset(static_cast<size_t>(size));
  std::vector<int64_t> sample(dataset.size()), count(datasets, 0);
  for (size_t at = 0, step = 1; at < dataset.size(); at += step, step = step * 7 % 1009) {
    step = std::min(step, dataset.size() - at);
    order.next(std::span(dataset).subspan(at, step), std::span(sample).subspan(at, step));
  }
  for (size_t i = 0; i < dataset.size(); ++i)
    EXPECT_EQ(sample[i], count[static_cast<size_t>(dataset[i])]++) << "sample " << i;
  EXPECT_EQ(order.taken(), count);
  return dataset;
}

/// Weights of many kinds: spread, nearly equal, equal, of few values, one of them large.
const std::vector<std::pair<std::string, std::function<double(size_t i, std::mt19937_64&)>>> kKinds = {
    {"spread", [](size_t, auto& g) { return std::uniform_real_distribution(0.001, 1.0)(g); }},
    {"log-normal", [](size_t, auto& g) { return std::exp(2 * std::normal_distribution()(g)); }},
    {"nearly equal", [](size_t, auto& g) { return std::uniform_real_distribution(1.0, 1.0 + 1e-9)(g); }},
    {"equal", [](size_t, auto&) { return 1.0; }},
    {"few", [](size_t, auto& g) { return static_cast<double>(1 + g() % 5); }},
    {"one large",
     [](size_t i, auto& g) { return i == 3 ? 1e5 : std::uniform_real_distribution(0.1, 1.0)(g); }},
    {"two groups",
     [](size_t i, auto& g) { return std::uniform_real_distribution(1.0, 1.001)(g) * (i % 2 ? 1e-3 : 1.0); }},
};

Weights weights_of(size_t kind, size_t datasets, std::mt19937_64& random) {
  Weights weights;
  for (size_t i = 0; i < datasets; ++i) weights.push_back(kKinds[kind].second(i, random));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

TEST(BlendOrder, EqualsTheComparisonOfAllDatasets) {
  std::mt19937_64 random(1);
  for (size_t kind = 0; kind < kKinds.size(); ++kind)
    for (const size_t datasets : {1, 2, 17, 49, 50, 300, 2000}) {
      const Weights weights = weights_of(kind, datasets, random);
      EXPECT_EQ(ordered(BlendOrder::by_weights(weights), 3000, datasets), compared(weights, 3000, {}))
          << datasets << " datasets, weights: " << kKinds[kind].first;
    }
}

TEST(BlendOrder, EndsWhenAllSamplesAreTaken) {
  std::mt19937_64 random(2);
  for (size_t kind = 0; kind < kKinds.size(); ++kind)
    for (const size_t datasets : {1, 3, 60, 500}) {
      std::vector<int64_t> sizes;
      for (const double weight : weights_of(kind, datasets, random))
        sizes.push_back(static_cast<int64_t>(weight * 4000) + static_cast<int64_t>(random() % 2));
      const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
      Weights weights;
      for (const int64_t size : sizes)
        weights.push_back(static_cast<double>(size) / static_cast<double>(total));
      while (!sizes.empty() && sizes.back() == 0) sizes.pop_back(), weights.pop_back();
      EXPECT_EQ(ordered(BlendOrder::exhaustive(sizes), total, sizes.size()), compared(weights, total, sizes))
          << datasets << " datasets, sizes: " << kKinds[kind].first;
      std::vector<int16_t> one_more(static_cast<size_t>(total) + 1);
      std::vector<int64_t> numbers(one_more.size());
      EXPECT_THROW(BlendOrder::exhaustive(sizes).next(one_more, numbers), Error);
    }
}

// Where doubles have few digits left, two datasets that differ in exact numbers may be equally far behind.
TEST(BlendOrder, RoundsAsMegatronLateInALongBlend) {
  std::mt19937_64 random(3);
  const Weights weights = weights_of(0, 400, random);
  constexpr int64_t kSamples = 400000;
  EXPECT_EQ(ordered(BlendOrder::by_weights(weights), kSamples, 400), compared(weights, kSamples, {}));
}

}  // namespace
}  // namespace megalith
