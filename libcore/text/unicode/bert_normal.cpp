#include "libcore/text/unicode/bert_normal.h"

#include <algorithm>
#include <utility>

#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/forms.h"
#include "libcore/text/unicode/reference_chars.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

bool is_ideograph(uint32_t c) {
  constexpr std::pair<uint32_t, uint32_t> kRanges[] = {
      {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},  {0x20000, 0x2A6DF},
      {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [c](const auto& range) { return c >= range.first && c <= range.second; });
}

std::string without_accents(std::string_view utf8) {
  std::string storage, out;
  const std::string_view decomposed = decompose(Decomposition::kNfd, utf8, storage);
  for (size_t at = 0; at < decomposed.size();) {
    const CodePoint c = code_point_at(decomposed.substr(at));
    if (!reference_char(c.value).is_bert_accent()) out += decomposed.substr(at, c.bytes);
    at += c.bytes;
  }
  return out;
}

}  // namespace

BertNormal::BertNormal(const BertRules& rules) : rules_(rules) {
  for (size_t i = 0; i < ascii_.size(); ++i) {
    const auto c = static_cast<uint8_t>(i);
    ascii_[c] = static_cast<int8_t>(c);
    if (rules.clean && is_space(c)) ascii_[c] = ' ';
    if (rules.clean && reference_char(c).is_bert_control()) ascii_[c] = kRemoved;
    if (rules.lower && c >= 'A' && c <= 'Z') ascii_[c] = static_cast<int8_t>(c - 'A' + 'a');
  }
}

/// Adds a character that is not ASCII, of code point `c`, cleaned and with blanks around an ideograph.
void BertNormal::add_to_run(uint32_t c, std::string_view character, std::string& run) const {
  if (rules_.clean && reference_char(c).is_bert_control()) return;
  if (rules_.clean && is_space(c))
    run += ' ';
  else if (rules_.space_ideographs && is_ideograph(c))
    run.append(" ").append(character).append(" ");
  else
    run += character;
}

void BertNormal::append_run(const std::string& run, std::string& out) const {
  const std::string text = rules_.strip_accents ? without_accents(run) : run;
  if (rules_.lower)
    append_reference_lower(text, out);
  else
    out += text;
}

void BertNormal::append(std::string_view utf8, std::string& out) const {
  out.reserve(out.size() + utf8.size());
  std::string run;  // since the last ASCII character that stays: marks move within such a run only
  for (size_t at = 0; at < utf8.size();) {
    const auto byte = static_cast<unsigned char>(utf8[at]);
    if (byte >= 0x80) {
      const CodePoint c = code_point_at(utf8.substr(at));
      add_to_run(c.value, utf8.substr(at, c.bytes), run);
      at += c.bytes;
      continue;
    }
    ++at;
    if (ascii_[byte] == kRemoved) continue;
    if (!run.empty()) {
      append_run(run, out);
      run.clear();
    }
    out += static_cast<char>(ascii_[byte]);
  }
  append_run(run, out);
}

}  // namespace megalith
