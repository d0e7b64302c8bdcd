#include "libcore/generate/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/base/random.h"

namespace megalith {
namespace {

/// The largest logit. It is computed in separate lanes, which the compiler vectorizes, because the loop over
/// the vocabulary takes a noticeable part of each token's time.
float max_logit(std::span<const float> logits) {
  constexpr size_t kLanes = 16;
  std::array<float, kLanes> maxima;
  maxima.fill(-std::numeric_limits<float>::infinity());
  std::array<int, kLanes> bad{};
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float x = logits[i + lane];
      maxima[lane] = x > maxima[lane] ? x : maxima[lane];
      bad[lane] |= static_cast<int>(x != x);
    }
  for (; i < logits.size(); ++i) {
    maxima[0] = std::max(maxima[0], logits[i]);
    bad[0] |= static_cast<int>(std::isnan(logits[i]));
  }
  if (std::any_of(bad.begin(), bad.end(), [](int lane) { return lane != 0; }))
    fail(ErrorKind::kData, "the model computes NaN; its weights are damaged, or the training diverged");
  return *std::max_element(maxima.begin(), maxima.end());
}

int32_t likeliest(std::span<const float> logits) {
  return static_cast<int32_t>(std::find(logits.begin(), logits.end(), max_logit(logits)) - logits.begin());
}

double total(std::span<const Sampler::Candidate> candidates) {
  double sum = 0;
  for (const Sampler::Candidate& candidate : candidates) sum += candidate.weight;
  return sum;
}

/// Uniform in [0, 1).
double uniform(int64_t seed, const Draw& draw) {
  const auto low = [](int64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](int64_t x) { return static_cast<uint32_t>(x >> 32); };
  const auto bits = philox({low(draw.step), high(draw.step), low(draw.sequence), high(draw.sequence)},
                           {low(seed), high(seed)});
  return (bits[0] + (bits[1] >> 11) / 0x1p21) / 0x1p32;
}

}  // namespace

void log_softmax(std::span<float> logits) {
  const float max = max_logit(logits);
  if (std::isinf(max))
    fail(ErrorKind::kData,
         "the model computes an infinite logit; its weights are damaged, or the training diverged");
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x - max));
  const auto shift = static_cast<float>(std::log(sum));
  for (float& x : logits) x = x - max - shift;
}

void Sampler::penalise(std::span<float> logits, std::span<const int32_t> before) {
  const auto penalty = static_cast<float>(options_.repetition_penalty);
  seen_.resize(logits.size());
  for (const int32_t token : before) {
    const auto i = static_cast<size_t>(token);
    if (i >= logits.size() || seen_[i]) continue;
    seen_[i] = true;
    logits[i] = logits[i] < 0 ? logits[i] * penalty : logits[i] / penalty;
  }
  for (const int32_t token : before)
    if (static_cast<size_t>(token) < logits.size()) seen_[static_cast<size_t>(token)] = false;
}

/// Makes tokens impossible that would repeat a sequence of tokens.
void Sampler::forbid_ngrams(std::span<float> logits, std::span<const int32_t> before) const {
  const auto size = static_cast<size_t>(options_.no_repeat_ngram);
  if (before.size() < size) return;
  const std::span<const int32_t> last = before.last(size - 1);
  for (size_t at = 0; at + size <= before.size(); ++at)
    if (const auto next = static_cast<size_t>(before[at + size - 1]);
        next < logits.size() && std::equal(last.begin(), last.end(), before.subspan(at, size - 1).begin()))
      logits[next] = -std::numeric_limits<float>::infinity();
}

void Sampler::weigh_by_history(std::span<float> logits, std::span<const int32_t> before) {
  if (options_.repetition_penalty != 1) penalise(logits, before);
  if (options_.no_repeat_ngram > 0) forbid_ngrams(logits, before);
}

/// Keeps the k likeliest tokens, and those that are as likely as the k-th; drops the others.
void Sampler::keep_top_k(std::span<const float> logits) {
  const auto k = static_cast<size_t>(options_.top_k);
  if (k == 0 || k >= logits.size()) return;
  sorted_.assign(logits.begin(), logits.end());
  const auto kth = sorted_.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(sorted_.begin(), kth, sorted_.end(), std::greater<>());
  std::erase_if(candidates_, [&](const Candidate& candidate) {
    return logits[static_cast<size_t>(candidate.token)] < *kth;
  });
}

/// Keeps the smallest number of the likeliest tokens that together have at least top_p of the weight; at
/// least one token.
void Sampler::keep_top_p() {
  if (options_.top_p >= 1) return;
  const double wanted = options_.top_p * total(candidates_);
  const auto less_likely = [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight < b.weight : a.token > b.token;
  };
  std::make_heap(candidates_.begin(), candidates_.end(), less_likely);
  auto rest = candidates_.end();  // the kept tokens are moved to [rest, end)
  double sum = 0;
  do {
    std::pop_heap(candidates_.begin(), rest, less_likely);
    sum += (--rest)->weight;
  } while (rest != candidates_.begin() && sum < wanted);
  candidates_.erase(candidates_.begin(), rest);
  std::reverse(candidates_.begin(), candidates_.end());
}

/// Keeps the tokens with at least min_p times the weight of the likeliest one.
void Sampler::keep_min_p() {
  if (options_.min_p <= 0) return;
  double most = 0;
  for (const Candidate& candidate : candidates_) most = std::max(most, candidate.weight);
  std::erase_if(candidates_, [&](const Candidate& one) { return one.weight < options_.min_p * most; });
}

/// Keeps the tokens whose information is nearest to the expected one, as many as have typical_p of the weight
/// together, and those that are as near as the last of them (Meister et al.,
/// https://arxiv.org/abs/2202.00666).
void Sampler::keep_typical() {
  if (options_.typical_p >= 1) return;
  const double sum = total(candidates_);
  double entropy = 0;
  ranked_.clear();
  for (const Candidate& one : candidates_) {
    const double information = -std::log(one.weight / sum);
    if (one.weight > 0) entropy += one.weight / sum * information;
    ranked_.push_back({.distance = information, .candidate = one});
  }
  for (Ranked& one : ranked_) one.distance = std::abs(one.distance - entropy);
  std::sort(ranked_.begin(), ranked_.end(),
            [](const Ranked& a, const Ranked& b) { return a.distance < b.distance; });
  candidates_.clear();
  double taken = 0, most = std::numeric_limits<double>::infinity();
  for (const Ranked& one : ranked_) {
    if (one.distance > most) break;
    candidates_.push_back(one.candidate);
    taken += one.candidate.weight;
    if (taken >= options_.typical_p * sum) most = one.distance;
  }
}

std::span<const Sampler::Candidate> Sampler::candidates(std::span<float> logits,
                                                        std::span<const int32_t> before) {
  weigh_by_history(logits, before);
  const double max = max_logit(logits);
  candidates_.clear();
  candidates_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) candidates_[i].token = static_cast<int32_t>(i);
  keep_top_k(logits);
  for (Candidate& candidate : candidates_)
    candidate.weight = std::exp((logits[static_cast<size_t>(candidate.token)] - max) / options_.temperature);
  keep_top_p();
  keep_min_p();
  keep_typical();
  std::erase_if(candidates_, [](const Candidate& candidate) { return candidate.weight == 0; });
  return candidates_;
}

int32_t Sampler::choose(std::span<float> logits, std::span<const int32_t> before, const Draw& draw) {
  if (options_.temperature == 0) {
    weigh_by_history(logits, before);
    return likeliest(logits);
  }
  const std::span<const Candidate> some = candidates(logits, before);
  double left = uniform(options_.seed, draw) * total(some);
  for (const Candidate& candidate : some)
    if ((left -= candidate.weight) < 0) return candidate.token;
  return some.back().token;
}

}  // namespace megalith
