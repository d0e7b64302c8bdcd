#include "libcore/options/fate.h"

#include <algorithm>

#include "libcore/base/flag_word.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

/// Whether two words are the same value. Upper and lower case do not differ; a flag's value may be spelled in
/// any accepted way.
bool same_word(const std::string& word, const std::string& other) {
  const bool flag = other == "true" || other == "false";
  return flag ? parse_flag(word) == parse_flag(other) : lower_ascii(word) == lower_ascii(other);
}

}  // namespace

std::vector<std::string_view> words_in(std::string_view names) {
  std::vector<std::string_view> words;
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    words.push_back(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return words;
}

bool is_one_of(std::string_view values, std::span<const std::string> words) {
  const std::string given = words.empty() ? "true" : join(words, " ");
  const std::vector<std::string> all = split(values, '|');
  return std::any_of(all.begin(), all.end(), [&](const auto& one) { return same_word(given, one); });
}

size_t letters_of(const OptionFate& fate, std::string_view name) {
  std::string_view own = fate.name;
  if (own == name) return name.size();
  if (fate.values == OptionFate::kMaybeOne && name.starts_with("no-") && name.substr(3) == own)
    return name.size();
  if (!own.ends_with('*')) return 0;
  own.remove_suffix(1);
  return name.starts_with(own) ? own.size() : 0;
}

bool refuses(const OptionFate& fate, std::span<const std::string> words) {
  return !fate.remedy.empty() && !is_one_of(fate.plain.empty() ? "false" : fate.plain, words);
}

bool lifted(const OptionFate& fate, std::span<const std::string> words, const RunFacts& run) {
  if (!fate.only.empty() && run.is && !run.is(fate.only)) return true;
  return !fate.repeats.empty() && !words.empty() && run.value_of(fate.repeats) == join(words, " ");
}

}  // namespace megalith
