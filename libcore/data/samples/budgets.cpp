#include "libcore/data/samples/budgets.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/samples/split.h"

namespace megalith {
namespace {

/// The tokens of an epoch of the dataset's training part.
int64_t training_tokens(const IndexedDataset& data, std::string_view split) {
  const auto range = split_sequences(split, data.sequences())[0];
  return range ? data.tokens_of(range->begin, range->end) : 0;
}

}  // namespace

std::optional<Budget> parse_budget(std::string_view word) {
  constexpr std::string_view kTokens = "tokens=", kEpochs = "epochs=";
  const bool epochs = word.starts_with(kEpochs);
  if (!epochs && !word.starts_with(kTokens)) return std::nullopt;
  const auto amount = parse_double(word.substr(epochs ? kEpochs.size() : kTokens.size()));
  if (!amount || !(*amount > 0) || !std::isfinite(*amount))
    fail(ErrorKind::kUsage, "--data-path: the budget ", quote(word), "; wanted a number above 0 after ",
         epochs ? kEpochs : kTokens);
  return Budget{*amount, epochs};
}

std::vector<double> weights_of_budgets(std::span<const Budget> budgets,
                                       std::span<const IndexedDataset> datasets, std::string_view split) {
  std::vector<double> weights;
  for (size_t i = 0; i < budgets.size(); ++i) {
    double tokens = budgets[i].amount;
    if (budgets[i].epochs) {
      const int64_t epoch = training_tokens(datasets[i], split);
      if (epoch == 0)
        fail(ErrorKind::kUsage, "--data-path: ", datasets[i].prefix(), " has a budget of ", budgets[i].amount,
             " epochs, but no token to train on; leave it out");
      tokens *= static_cast<double>(epoch);
    }
    weights.push_back(std::max(1.0, std::nearbyint(tokens)));
  }
  return weights;
}

std::string weights_text(std::span<const double> weights, std::span<const std::string> prefixes) {
  std::string text;
  for (size_t i = 0; i < weights.size(); ++i)
    text += concat(i > 0 ? " " : "", format_fixed(weights[i], 0), ' ', prefixes[i]);
  return text;
}

}  // namespace megalith
