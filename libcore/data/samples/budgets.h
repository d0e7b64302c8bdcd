#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/data/indexed/indexed_dataset.h"

namespace megalith {

/// How much of a dataset a run should read: "tokens=5e9", or "epochs=1.5" of its training part.
struct Budget {
  double amount = 0;
  bool epochs = false;
};

/// The budget that a word of a data path states; nothing for another word. kUsage for an amount that is no
/// number above 0.
std::optional<Budget> parse_budget(std::string_view word);

/// The budgets as weights, which blend the datasets in the same proportions: whole numbers of tokens, epochs
/// counted in the sequences that `split` (see split_sequences()) gives to training. kUsage if a dataset with
/// a budget in epochs has no token there.
std::vector<double> weights_of_budgets(std::span<const Budget> budgets,
                                       std::span<const IndexedDataset> datasets, std::string_view split);

/// The words of a data path with these weights: "5000000000 a 120 b".
std::string weights_text(std::span<const double> weights, std::span<const std::string> prefixes);

}  // namespace megalith
