#include "libcore/config/batch_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

/// A number with an optional unit, without its fraction; nothing if it is none, or does not fit.
std::optional<int64_t> parse_amount(std::string_view text) {
  constexpr std::string_view kUnits = "KMBT";
  text = trim(text);
  double unit = 1;
  if (!text.empty()) {
    const char last = text.back() >= 'a' ? static_cast<char>(text.back() - 'a' + 'A') : text.back();
    if (const size_t at = kUnits.find(last); at != std::string_view::npos) {
      unit = std::pow(1e3, static_cast<double>(at + 1));
      text.remove_suffix(1);
    }
  }
  const auto number = parse_double(text);
  if (!number || !(*number >= 0) || !(*number * unit < 0x1p63)) return std::nullopt;
  return static_cast<int64_t>(*number * unit);
}

std::optional<BatchLevel> parse_level(std::string_view entry, int64_t seq_length) {
  const size_t colon = entry.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto from = parse_amount(entry.substr(0, colon)), batch = parse_amount(entry.substr(colon + 1));
  if (!from || !batch || *batch < 1 || *batch > std::numeric_limits<int>::max()) return std::nullopt;
  return BatchLevel{seq_length > 0 ? *from / seq_length : *from, *batch};
}

/// What is wrong with levels in ascending order; empty: nothing.
std::string complaint(const std::vector<BatchLevel>& levels) {
  if (levels.empty()) return "holds no THRESHOLD:BATCH";
  if (levels.front().from != 0)
    return concat("begins after ", levels.front().from, " samples; give the batch from 0 on");
  for (size_t i = 1; i < levels.size(); ++i)
    if (levels[i].from == levels[i - 1].from)
      return concat("has two batches, ", levels[i - 1].batch, " and ", levels[i].batch,
                    ", for the steps after ", levels[i].from, " samples; give one of them");
  return {};
}

/// The number of samples after which the level `at` ends.
int64_t end_of(std::span<const BatchLevel> levels, size_t at) {
  return at + 1 < levels.size() ? levels[at + 1].from : std::numeric_limits<int64_t>::max();
}

size_t level_at(std::span<const BatchLevel> levels, int64_t consumed) {
  size_t at = 0;
  while (consumed >= end_of(levels, at)) ++at;
  return at;
}

}  // namespace

int64_t BatchSchedule::largest() const {
  int64_t batch = 0;
  for (const BatchLevel& level : levels) batch = std::max(batch, level.batch);
  return batch;
}

BatchSchedule parse_batch_schedule(std::string_view text, int64_t seq_length) {
  BatchSchedule schedule;
  std::string words(text);
  std::replace(words.begin(), words.end(), ',', ' ');
  for (const std::string& word : split(words, ' ')) {
    if (trim(word).empty()) continue;
    const auto level = parse_level(trim(word), seq_length);
    if (!level) {
      schedule.wrong = concat("holds ", quote(trim(word)), ", wanted THRESHOLD:BATCH, such as 250B:1536");
      return schedule;
    }
    schedule.levels.push_back(*level);
  }
  if (trim(words).empty()) return schedule;
  std::stable_sort(schedule.levels.begin(), schedule.levels.end(),
                   [](const BatchLevel& a, const BatchLevel& b) { return a.from < b.from; });
  schedule.wrong = complaint(schedule.levels);
  return schedule;
}

int64_t batch_at(std::span<const BatchLevel> levels, int64_t consumed) {
  return levels[level_at(levels, consumed)].batch;
}

CountedSteps steps_in_levels(std::span<const BatchLevel> levels, int64_t consumed, int64_t max_steps,
                             int64_t samples) {
  CountedSteps counted;
  for (size_t at = level_at(levels, consumed); at < levels.size(); ++at) {
    const int64_t batch = levels[at].batch, end = end_of(levels, at);
    if (consumed >= end) continue;  // the last step of the level before went past this one
    const int64_t begun = (end - consumed - 1) / batch + 1;  // the steps that begin in this level
    const int64_t steps =
        std::min({begun, max_steps - counted.steps, std::max<int64_t>(samples - consumed, 0) / batch});
    counted.steps += steps;
    counted.samples += steps * batch;
    consumed += steps * batch;
    if (steps < begun) break;
  }
  return counted;
}

}  // namespace megalith
