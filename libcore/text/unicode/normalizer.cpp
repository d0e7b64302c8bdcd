#include "libcore/text/unicode/normalizer.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/utf8.h"
#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/nfc.h"
#include "libcore/text/unicode/reference_chars.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

std::string_view apply_step(const Normalizer::Nfc&, std::string_view utf8, std::string& out, size_t) {
  return to_nfc(utf8, out);
}

std::string_view apply_step(const Normalizer::Nfkc&, std::string_view utf8, std::string& out, size_t) {
  std::string storage;
  const std::string_view decomposed = decompose(Decomposition::kNfkd, utf8, storage);
  const std::string_view composed = to_nfc(decomposed, out);
  if (composed.data() != storage.data()) return composed;
  out = std::move(storage);
  return out;
}

std::string_view apply_step(const Normalizer::Decompose& step, std::string_view utf8, std::string& out,
                            size_t) {
  return decompose(step.form, utf8, out);
}

std::string_view apply_step(const Normalizer::StripAccents&, std::string_view utf8, std::string& out,
                            size_t) {
  out.clear();
  for (size_t at = 0; at < utf8.size();) {
    const CodePoint c = code_point_at(utf8.substr(at));
    if (!reference_char(c.value).is_accent()) out += utf8.substr(at, c.bytes);
    at += c.bytes;
  }
  return out;
}

std::string_view apply_step(const Normalizer::Lowercase&, std::string_view utf8, std::string& out, size_t) {
  out.clear();
  append_reference_lower(utf8, out);
  return out;
}

bool is_nmt_control(uint32_t c) {
  return (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
}
bool is_nmt_blank(uint32_t c) {
  return c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

std::string_view apply_step(const Normalizer::Nmt&, std::string_view utf8, std::string& out, size_t) {
  out.clear();
  for (size_t at = 0; at < utf8.size();) {
    const CodePoint c = code_point_at(utf8.substr(at));
    if (is_nmt_blank(c.value))
      out += ' ';
    else if (!is_nmt_control(c.value))
      out += utf8.substr(at, c.bytes);
    at += c.bytes;
  }
  return out;
}

std::string_view apply_step(const Normalizer::Prepend& step, std::string_view utf8, std::string& out,
                            size_t) {
  if (utf8.empty() || step.text.empty()) return utf8;
  out.assign(step.text);
  out += utf8;
  return out;
}

/// Replaces every occurrence, but stops once the result has more than `max_bytes` bytes.
std::string_view apply_step(const Normalizer::Replace& step, std::string_view utf8, std::string& out,
                            size_t max_bytes) {
  size_t found = utf8.find(step.from);
  if (found == std::string_view::npos) return utf8;
  out.clear();
  while (found != std::string_view::npos && out.size() <= max_bytes) {
    out += utf8.substr(0, found);
    out += step.to;
    utf8.remove_prefix(found + step.from.size());
    found = utf8.find(step.from);
  }
  out += utf8;
  return out;
}

/// Stops as Replace does.
std::string_view apply_step(const Normalizer::ReplaceMatches& step, std::string_view utf8, std::string& out,
                            size_t max_bytes) {
  if (utf8.empty()) return utf8;
  out.clear();
  size_t kept = 0;  // where what no match has taken begins
  bool matches = false;
  step.each_match(utf8, [&](size_t begin, size_t end) {
    matches = true;
    if (out.size() > max_bytes) return;
    out.append(utf8.substr(kept, begin - kept)).append(step.to);
    kept = end;
  });
  if (!matches) return utf8;
  out += utf8.substr(kept);
  return out;
}

/// Stops as Replace does.
std::string_view apply_step(const Normalizer::JoinBlanks& step, std::string_view utf8, std::string& out,
                            size_t max_bytes) {
  size_t found = utf8.find("  ");
  if (found == std::string_view::npos) return utf8;
  out.clear();
  while (found != std::string_view::npos && out.size() <= max_bytes) {
    out += utf8.substr(0, found);
    out += step.to;
    utf8.remove_prefix(std::min(utf8.find_first_not_of(' ', found), utf8.size()));
    found = utf8.find("  ");
  }
  out += utf8;
  return out;
}

std::string_view apply_step(const Normalizer::Strip& step, std::string_view utf8, std::string&, size_t) {
  while (step.left && !utf8.empty()) {
    const CodePoint first = code_point_at(utf8);
    if (!is_space(first.value)) break;
    utf8.remove_prefix(first.bytes);
  }
  while (step.right && !utf8.empty()) {
    const size_t last = character_begin(utf8, utf8.size() - 1);
    if (!is_space(code_point_at(utf8.substr(last)).value)) break;
    utf8.remove_suffix(utf8.size() - last);
  }
  return utf8;
}

std::string_view apply_step(const BertNormal& step, std::string_view utf8, std::string& out, size_t) {
  out.clear();
  step.append(utf8, out);
  return out;
}

/// Appends what a text becomes by the shortest rule with which it begins, or else the text.
void append_mapped(const Charsmap& charsmap, std::string_view text, std::string& out) {
  const auto match = charsmap.shortest(text);
  out += match ? match->text : text;
}

std::string_view apply_step(const Normalizer::Precompiled& step, std::string_view utf8, std::string& out,
                            size_t max_bytes) {
  constexpr size_t kLongestMapped = 5;
  const Charsmap& charsmap = *step.charsmap;
  out.clear();
  while (!utf8.empty() && out.size() <= max_bytes) {
    std::string_view cluster = utf8.substr(0, cluster_end(utf8));
    utf8.remove_prefix(cluster.size());
    if (cluster.size() <= kLongestMapped) {
      if (const auto match = charsmap.shortest(cluster)) {
        out += match->text;
        continue;
      }
    }
    while (!cluster.empty()) {
      const size_t bytes = code_point_at(cluster).bytes;
      append_mapped(charsmap, cluster.substr(0, bytes), out);
      cluster.remove_prefix(bytes);
    }
  }
  return out;
}

}  // namespace

std::string_view Normalizer::apply(std::string_view utf8, Scratch& scratch) const {
  const size_t given = utf8.size();
  const size_t max_bytes =
      64 * given + (size_t{1} << 16);  // without a limit, a few rounds of doubling would fill any memory
  for (const Step& step : steps_) {
    const std::string_view next =
        std::visit([&](const auto& s) { return apply_step(s, utf8, scratch.next, max_bytes); }, step);
    if (next.size() > max_bytes)
      fail(ErrorKind::kData, "the tokenizer's normalizer makes more than ", max_bytes, " bytes of a text of ",
           given, "; no language needs that");
    const bool is_new = next.data() == scratch.next.data();
    if (is_new) scratch.text.swap(scratch.next);
    utf8 = is_new ? std::string_view(scratch.text) : next;
  }
  return utf8;
}

}  // namespace megalith
