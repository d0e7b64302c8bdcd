#include "libcore/finetune/text_scores.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "libcore/base/utf8.h"
#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/punkt_chars.h"
#include "libcore/text/unicode/python_text.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_stop(char c) {
  return c == '.' || c == ',';
}
/// Whether a byte is in sacrebleu's [\{-\~\[-\` -\&\(-\+\:-\@\/].
bool stands_alone(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

/// Replaces each match of a two-character regular expression, from left to right and without overlap: puts
/// blanks before, between and after the two characters. If one of them has several bytes, `matches` sees only
/// its byte next to the ASCII character, which is enough.
template <class Matches>
std::string spaced_pairs(const std::string& text, Matches&& matches, const char* before, const char* after) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !matches(text[i], text[i + 1])) {
      out += text[i];
      continue;
    }
    out += before;
    out += text[i];
    out += ' ';
    out += text[++i];
    out += after;
  }
  return out;
}

std::vector<std::string> blank_separated(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.substr(at));
    const bool blank = is_python_space(c.value);
    if (!blank && !inside) words.emplace_back();
    if (!blank) words.back() += text.substr(at, c.bytes);
    inside = !blank;
    at += c.bytes;
  }
  return words;
}

using Counts = std::map<std::vector<std::string>, int64_t>;

Counts ngrams(std::span<const std::string> words, size_t n) {
  Counts counts;
  for (size_t i = 0; i + n <= words.size(); ++i)
    ++counts[{words.begin() + static_cast<std::ptrdiff_t>(i),
              words.begin() + static_cast<std::ptrdiff_t>(i + n)}];
  return counts;
}

size_t longest_common_subsequence(std::span<const std::string> a, std::span<const std::string> b) {
  std::vector<size_t> row(b.size() + 1, 0);
  for (const std::string& word : a) {
    size_t diagonal = 0;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = word == b[j - 1] ? diagonal + 1 : std::max(above, row[j - 1]);
      diagonal = above;
    }
  }
  return row.back();
}

double rouge_l(std::string_view text, std::string_view wanted) {
  const std::vector<std::string> found = rouge_words(text), target = rouge_words(wanted);
  const auto common = static_cast<double>(longest_common_subsequence(found, target));
  if (common == 0) return 0;
  const double precision = common / static_cast<double>(found.size()),
               recall = common / static_cast<double>(target.size());
  return 2 * precision * recall / (precision + recall);
}

double percent(double part, int64_t whole) {
  return whole == 0 ? 0 : 100 * part / static_cast<double>(whole);
}

}  // namespace

std::vector<std::string> bleu_words(std::string_view text) {
  std::string line = replaced(right_stripped(text), "<skipped>", "");
  line = replaced(replaced(line, "-\n", ""), "\n", " ");
  for (const auto& [from, to] : std::initializer_list<std::pair<const char*, const char*>>{
           {"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}})
    line = replaced(line, from, to);
  std::string apart;
  for (const char c : " " + line + " ") apart += stands_alone(c) ? std::string{' ', c, ' '} : std::string{c};
  apart = spaced_pairs(
      apart, [](char a, char b) { return !is_digit(a) && is_stop(b); }, "", " ");
  apart = spaced_pairs(
      apart, [](char a, char b) { return is_stop(a) && !is_digit(b); }, " ", "");
  apart = spaced_pairs(
      apart, [](char a, char b) { return is_digit(a) && b == '-'; }, "", " ");
  return blank_separated(apart);
}

std::vector<std::string> rouge_words(std::string_view text) {
  std::string lower;
  append_lower(text, lower);
  for (char& c : lower)
    if (!is_digit(c) && !(c >= 'a' && c <= 'z')) c = ' ';
  return blank_separated(lower);
}

void TextScorer::add(std::string_view text, std::string_view wanted) {
  const std::string found = replace_invalid_utf8(text), target = replace_invalid_utf8(wanted);
  const std::vector<std::string> words = bleu_words(found), target_words = bleu_words(target);
  words_ += static_cast<int64_t>(words.size());
  wanted_words_ += static_cast<int64_t>(target_words.size());
  for (size_t n = 1; n <= kOrders; ++n) {
    const Counts known = ngrams(target_words, n);
    for (const auto& [gram, count] : ngrams(words, n)) {
      total_[n - 1] += count;
      if (const auto same = known.find(gram); same != known.end())
        correct_[n - 1] += std::min(count, same->second);
    }
  }
  rouge_ += rouge_l(found, target);
  exact_ += stripped(found) == stripped(target) ? 1 : 0;
  ++texts_;
}

// BLEU (Papineni et al. 2002) with the smoothing of mteval-v13a ("exp"): the first order without a match
// counts as half a match, the next one as a quarter, and so on.
double TextScorer::bleu() const {
  if (std::ranges::count(correct_, 0) == static_cast<std::ptrdiff_t>(kOrders)) return 0;
  double log_sum = 0, smoothing = 1;
  for (size_t i = 0; i < kOrders; ++i) {
    if (total_[i] == 0) return 0;
    if (correct_[i] == 0) smoothing *= 2;
    const double matches = correct_[i] > 0 ? static_cast<double>(correct_[i]) : 1 / smoothing;
    log_sum += std::log(100 * matches / static_cast<double>(total_[i]));
  }
  const double ratio = static_cast<double>(wanted_words_) / static_cast<double>(words_);
  return std::exp(std::min(0.0, 1 - ratio) + log_sum / static_cast<double>(kOrders));
}

TextScores TextScorer::scores() const {
  return {.bleu = bleu(),
          .rouge_l = percent(rouge_, texts_),
          .exact_match = percent(static_cast<double>(exact_), texts_),
          .texts = texts_};
}

}  // namespace megalith
