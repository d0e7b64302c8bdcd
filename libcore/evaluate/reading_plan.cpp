#include "libcore/evaluate/reading_plan.h"

#include <algorithm>
#include <numeric>

#include "libcore/base/error.h"

namespace megalith {
namespace {

size_t shared_length(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t both = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(both), b.begin()).first - a.begin());
}

}  // namespace

ReadingPlan plan_reading(std::span<const ScoredTokens> texts) {
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::ranges::lexicographical_compare(texts[a].inputs(), texts[b].inputs());
  });
  ReadingPlan plan;
  std::span<const int32_t> held;  // the tokens in the cache
  std::vector<int64_t> row_of;    // for each of them, its row
  for (const size_t i : order) {
    const ScoredTokens& text = texts[i];
    const auto size = static_cast<int64_t>(text.tokens.size());
    if (text.scored < 1 || text.scored >= size)
      fail(ErrorKind::kInternal, "a text of ", size, " tokens, of which ", text.scored, " are scored");
    const size_t shared = shared_length(held, text.inputs());
    if (const auto past = static_cast<int64_t>(shared), rows = size - 1 - past; rows > 0) {
      plan.pieces.push_back({i, past, rows});
      row_of.resize(shared);
      for (int64_t row = 0; row < rows; ++row) row_of.push_back(plan.rows + row);
      plan.rows += rows;
      held = text.inputs();
    }
    plan.longest = std::max(plan.longest, size - 1);
    for (int64_t at = size - text.scored; at < size; ++at)
      plan.targets.push_back({row_of[static_cast<size_t>(at - 1)], i, text.tokens[static_cast<size_t>(at)]});
  }
  std::ranges::stable_sort(plan.targets, {}, &ReadingPlan::Target::row);
  return plan;
}

}  // namespace megalith
