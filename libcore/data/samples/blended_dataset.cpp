#include "libcore/data/samples/blended_dataset.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/machine/huge_pages.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/io/files/name_pattern.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

/// The datasets whose prefixes match a pattern of names, in the order of their bytes; the word itself if it
/// is no pattern, or if a dataset has that name.
std::vector<std::string> datasets_of(const std::string& word) {
  constexpr std::string_view kEnd = ".idx";
  if (!is_pattern(word) || file_exists(concat(word, kEnd))) return {word};
  std::vector<std::string> prefixes = paths_matching(concat(word, kEnd));
  if (prefixes.empty()) fail(ErrorKind::kNoInput, "--data-path ", quote(word), ": no dataset matches it");
  for (std::string& prefix : prefixes) prefix.resize(prefix.size() - kEnd.size());
  std::sort(prefixes.begin(), prefixes.end());  // "a" before "a.b", whatever comes after the prefix
  return prefixes;
}

/// A path of PREFIX BUDGET pairs; nothing if no word is a budget.
std::optional<Blend> parse_budgets(std::span<const std::string> words) {
  Blend blend;
  bool any = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto budget = parse_budget(trim(words[i]));
    any |= budget.has_value();
    if (budget && i % 2 == 1)
      blend.budgets.push_back(*budget);
    else if (!budget && i % 2 == 0)
      blend.prefixes.emplace_back(trim(words[i]));
  }
  if (!any) return std::nullopt;
  if (2 * blend.budgets.size() != words.size() || blend.prefixes.size() != blend.budgets.size())
    fail(ErrorKind::kUsage, "--data-path: ", join(words, " "),
         " gives a budget to some of its datasets; give PREFIX BUDGET pairs, where BUDGET is tokens=N or "
         "epochs=N, or no budget");
  for (std::string& prefix : blend.prefixes) {
    std::vector<std::string> matches = datasets_of(prefix);
    if (matches.size() != 1)
      fail(ErrorKind::kUsage, "--data-path: ", matches.size(), " datasets match ", quote(prefix),
           ", which has a budget; give each dataset a budget of its own");
    prefix = std::move(matches[0]);
  }
  return blend;
}

}  // namespace

Blend parse_blend(std::span<const std::string> words) {
  if (auto budgeted = parse_budgets(words)) return *std::move(budgeted);
  Blend blend;
  const auto add_prefix = [&](const std::string& word) {
    std::vector<std::string> prefixes = datasets_of(std::string(trim(word)));
    std::move(prefixes.begin(), prefixes.end(), std::back_inserter(blend.prefixes));
    return prefixes.size();
  };
  std::vector<std::optional<double>> weights;
  if (words.size() % 2 == 0)
    for (size_t i = 0; i < words.size(); i += 2) weights.push_back(parse_double(trim(words[i])));
  const auto missing = std::find(weights.begin(), weights.end(), std::nullopt);
  const auto given =
      std::find_if(weights.begin(), weights.end(), [](const auto& w) { return w.has_value(); });
  if (given == weights.end()) {
    for (const std::string& word : words) add_prefix(word);
    return blend;
  }
  if (missing != weights.end())
    fail(ErrorKind::kUsage, "--data-path: ", quote(words[2 * static_cast<size_t>(given - weights.begin())]),
         " is a weight, but ", quote(words[2 * static_cast<size_t>(missing - weights.begin())]),
         " is not; give WEIGHT PREFIX pairs, or prefixes only");
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!(*weights[i] > 0) || !std::isfinite(*weights[i]))
      fail(ErrorKind::kUsage, "--data-path: the weight ", quote(words[2 * i]), " of ",
           quote(words[2 * i + 1]), "; wanted more than 0, or leave the dataset out");
    blend.weights.push_back(*weights[i]);
    if (const size_t n = add_prefix(words[2 * i + 1]); n != 1)
      fail(ErrorKind::kUsage, "--data-path: ", n, " datasets match ", quote(words[2 * i + 1]),
           ", which has the weight ", quote(words[2 * i]), "; give each dataset a weight of its own");
  }
  return blend;
}

// Adds as pairwise_sum in numpy/core/src/umath/loops_utils.h.src does: up to 128 elements in eight running
// sums; more elements are split into two halves at a multiple of 8. The order matters: the weights must equal
// Megatron's to the bit.
double numpy_sum(std::span<const double> v) {
  constexpr size_t kLanes = 8, kBlock = 128;
  if (v.size() < kLanes) return std::accumulate(v.begin(), v.end(), 0.0);
  if (v.size() > kBlock) {
    size_t half = v.size() / 2;
    half -= half % kLanes;
    return numpy_sum(v.first(half)) + numpy_sum(v.subspan(half));
  }
  double r[kLanes];
  std::copy_n(v.begin(), kLanes, r);
  size_t i = kLanes;
  for (; i + kLanes <= v.size(); i += kLanes)
    for (size_t j = 0; j < kLanes; ++j) r[j] += v[i + j];
  const double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  return std::accumulate(v.begin() + static_cast<std::ptrdiff_t>(i), v.end(), sum);
}

std::vector<double> normalized(std::span<const double> weights) {
  const double sum = numpy_sum(weights);
  std::vector<double> shares(weights.begin(), weights.end());
  for (double& share : shares) share /= sum;
  return shares;
}

BlendIndex blend_in_memory(BlendOrder order, int64_t size) {
  const auto n = static_cast<size_t>(size);
  const auto datasets = std::make_shared<HugePages>(n * sizeof(int16_t), HugePages::Backing::kReserved);
  const auto samples = std::make_shared<HugePages>(n * sizeof(int64_t), HugePages::Backing::kReserved);
  constexpr size_t kSamplesWithoutPause = size_t{1} << 18;
  for (size_t done = 0; done < n; done += kSamplesWithoutPause) {
    stop_if_asked();
    const size_t next = std::min(kSamplesWithoutPause, n - done);
    order.next(datasets->as<int16_t>().subspan(done, next), samples->as<int64_t>().subspan(done, next));
  }
  return {{datasets->as<int16_t>(), datasets}, {samples->as<int64_t>(), samples}};
}

BlendIndex blend_by_weights(std::span<const double> weights, int64_t size) {
  return blend_in_memory(BlendOrder::by_weights(weights), size);
}

BlendIndex blend_exhaustively(std::span<const int64_t> sizes) {
  return blend_in_memory(BlendOrder::exhaustive(sizes),
                         std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
}

BlendedDataset::BlendedDataset(std::vector<GptDataset> datasets, BlendIndex index)
    : datasets_(std::move(datasets)), index_(std::move(index)) {
  std::vector<int64_t> asked(datasets_.size(), 0);
  for (const int16_t i : index_.dataset) ++asked[static_cast<size_t>(i)];
  for (size_t i = 0; i < datasets_.size(); ++i)
    if (asked[i] > datasets_[i].size())
      fail(ErrorKind::kData, datasets_[i].data().prefix(), ", split ", datasets_[i].spec().name,
           ": the blend asks for ", asked[i], " samples, it has ", datasets_[i].size(),
           "; ask for fewer samples, or give the datasets weights");
}

const GptDataset& BlendedDataset::source_of(int64_t sample) const {
  if (sample < 0 || sample >= size())
    fail(ErrorKind::kInternal, "sample ", sample, " of a blend of ", size(), " requested");
  return datasets_[static_cast<size_t>(index_.dataset[static_cast<size_t>(sample)])];
}

std::vector<int64_t> BlendedDataset::ids(int64_t sample, int64_t* sequences) const {
  return source_of(sample).ids(index_.sample[static_cast<size_t>(sample)], sequences);
}

void BlendedDataset::get(int64_t sample, const SampleView& out) const {
  source_of(sample).get(index_.sample[static_cast<size_t>(sample)], out);
}

}  // namespace megalith
