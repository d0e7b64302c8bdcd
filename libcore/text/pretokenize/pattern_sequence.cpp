#include "libcore/text/pretokenize/pattern_sequence.h"

#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/utf8.h"

namespace megalith {

MatchBegins::MatchBegins(const SplitPattern& pattern) : pattern_(pattern) {
  ascii_.fill(true);
  if (pattern.begins)
    for (uint32_t c = 0; c < 0x80; ++c) ascii_[c] = pattern.begins(c);
}

FindMatches matches_of(SplitPattern pattern) {
  if (pattern.find_all) return pattern.find_all;
  const auto kept = std::make_shared<const SplitPattern>(std::move(pattern));
  return [kept, begins = MatchBegins(*kept)](std::string_view utf8, const auto& take) {
    each_match(*kept, begins, utf8, take);
  };
}

PatternSequence::Tables::Tables(std::vector<SplitPattern> given) : patterns(std::move(given)) {
  constexpr size_t kMostPatterns = 32;
  if (patterns.size() > kMostPatterns)
    fail(ErrorKind::kInternal, patterns.size(), " patterns, wanted at most ", kMostPatterns);
  for (const SplitPattern& pattern : patterns) begins.emplace_back(pattern);
  for (size_t byte = 0; byte < tried_at.size(); ++byte)
    for (size_t i = 0; i < patterns.size(); ++i) {
      const char c = static_cast<char>(byte);
      const bool tried = byte >= 0x80 || patterns[i].skip || begins[i].may_begin(&c, &c + 1);
      tried_at[byte] |= uint32_t{tried} << i;
    }
  for (const uint32_t tried : tried_at) always &= tried;
}

PatternSequence::PatternSequence(std::vector<SplitPattern> patterns)
    : tables_(std::make_shared<const Tables>(std::move(patterns))) {}

/// Splits a window by the patterns.
class PatternSequence::Cutting {
 public:
  Cutting(const Tables& tables, const char* begin, std::span<uint32_t> ends)
      : tables_(tables), begin_(begin), ends_(ends) {}

  /// Finds the ends of pretokens, and returns how many are certain.
  size_t cut(const Window& text) {
    cut({0, kUnknown}, begin_, text);
    return count_;
  }

 private:
  /// The first of the patterns that are yet to be applied, and a bit for each that need be tried.
  struct Rest {
    size_t first;
    uint32_t tried;
  };
  static constexpr uint32_t kUnknown = UINT32_MAX;
  static constexpr size_t kShort = 64;         // bytes of a piece that are looked at to learn which are tried
  static constexpr std::ptrdiff_t kLong = 64;  // bytes from which on finding many matches at a time is faster

  Rest needed(Rest rest, const char* at, const Window& text) const {
    if (rest.first == tables_.patterns.size() || (tables_.always >> rest.first & 1) != 0) return rest;
    if (rest.tried == kUnknown && static_cast<size_t>(text.end() - at) <= kShort) {
      rest.tried = 0;
      for (; at < text.end(); ++at) rest.tried |= tables_.tried_at[static_cast<uint8_t>(*at)];
    }
    while (rest.first < tables_.patterns.size() && (rest.tried >> rest.first & 1) == 0) ++rest.first;
    return rest;
  }

  /// Splits a window by the patterns that are left. Returns false if there is no more room, or if the
  /// following ends are not certain.
  bool cut(Rest rest, const char* at, const Window& text) {
    rest = needed(rest, at, text);
    if (rest.first == tables_.patterns.size()) return take(text);
    const SplitPattern& pattern = tables_.patterns[rest.first];
    const Rest then = {rest.first + 1, rest.tried};
    if (pattern.looks_ahead && text.end() - at > kLong) return cut_found(pattern, then, at, text);
    const MatchBegins& begins = tables_.begins[rest.first];
    const char* gap = at;  // where the text since the last match begins
    while ((at = begins.next(at, text)) < text.end()) {
      const Window seen(text.end(), text.open());
      const char* const end = pattern.match(at, seen);
      if (seen.unsure()) return cut_gap(then, gap, at);
      if (end == at) {
        at = begins.after(at);
        continue;
      }
      if (gap < at && !cut(then, gap, Window(at, false))) return false;
      if (!cut(then, at, Window(end, false))) return false;
      gap = at = end;
    }
    return gap == at || cut(then, gap, Window(at, text.open()));
  }
  /// The same for a pattern whose matches cover the window and are found many at a time.
  bool cut_found(const SplitPattern& pattern, Rest then, const char* at, const Window& text) {
    std::array<uint32_t, 2 * kMinEnds> ends;
    while (at < text.end()) {
      const char* const begin = at;
      const size_t count = pattern.find({at, static_cast<size_t>(text.end() - at)}, ends);
      for (const uint32_t end : std::span(ends).first(count)) {
        if (text.open() && static_cast<size_t>(text.end() - begin) < end + *pattern.looks_ahead) return false;
        if (!cut(then, at, Window(begin + end, false))) return false;
        at = begin + end;
      }
    }
    return true;
  }
  /// Splits the gap before `at` if nothing is certain from `at` on: the gap may continue there. Returns
  /// false.
  bool cut_gap(Rest then, const char* gap, const char* at) {
    if (gap < at) cut(then, gap, Window(at, true));
    return false;
  }
  bool take(const Window& text) {
    if (text.open() || count_ == ends_.size()) return false;
    ends_[count_++] = static_cast<uint32_t>(text.end() - begin_);
    return true;
  }

  const Tables& tables_;
  const char* begin_;
  std::span<uint32_t> ends_;
  size_t count_ = 0;
};

size_t PatternSequence::operator()(std::string_view utf8, std::span<uint32_t> ends) const {
  for (size_t bytes = 8 * ends.size();; bytes *= 4) {
    const std::string_view part = bytes >= utf8.size() ? utf8 : utf8.substr(0, character_begin(utf8, bytes));
    if (part.size() > UINT32_MAX) refuse_giant_pretoken(part.size());
    const Window text(part.data() + part.size(), part.size() < utf8.size());
    if (const size_t count = Cutting(*tables_, part.data(), ends).cut(text); count > 0) return count;
  }
}

}  // namespace megalith
