#include "libcore/data/shards/shard.h"

#include <algorithm>
#include <cstdlib>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

/// A number in five digits, or more if it has more.
std::string digits(int64_t number) {
  const std::string text = std::to_string(number);
  constexpr size_t kDigits = 5;
  return std::string(kDigits - std::min(kDigits, text.size()), '0') + text;
}

}  // namespace

std::string Shard::suffix() const {
  return concat('-', digits(index), "-of-", digits(count));
}

std::optional<ShardRange> parse_shards(std::string_view text) {
  const size_t slash = text.find('/'), dash = text.substr(0, slash).find('-');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto count = parse_int(text.substr(slash + 1));
  const auto first = parse_int(text.substr(0, std::min(slash, dash)));
  const auto last =
      dash == std::string_view::npos ? first : parse_int(text.substr(dash + 1, slash - dash - 1));
  const bool whole = count && first && last;
  if (!whole || *count > kMaxShards || *first < 0 || *first > *last || *last >= *count) return std::nullopt;
  return ShardRange{*first, *last, *count};
}

std::optional<EngineIndex> engine_index() {
  constexpr std::string_view kOfStep = "SLURM_PROCID";
  for (const char* variable :
       {"MEGALITH_SHARD", "SLURM_ARRAY_TASK_ID", kOfStep.data(), "JOB_COMPLETION_INDEX"}) {
    const char* const value = std::getenv(variable);
    if (!value || (variable == kOfStep && !std::getenv("SLURM_STEP_ID"))) continue;
    const auto index = parse_int(value);
    if (!index || *index < 0)
      fail(ErrorKind::kUsage, variable, "=", quote(value), ": wanted the number of a shard, from 0");
    return EngineIndex{variable, *index};
  }
  return std::nullopt;
}

std::string ranges_text(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += concat(text.empty() ? "" : ",", numbers[i]);
    if (end - i > 1) text += concat('-', numbers[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace megalith
