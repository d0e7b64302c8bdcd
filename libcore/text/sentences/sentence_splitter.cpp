#include "libcore/text/sentences/sentence_splitter.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "libcore/base/utf8.h"
#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/punkt_chars.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

constexpr size_t kPartCharacters = 1'000'000;  // as in Megatron's Encoder.split
constexpr std::string_view kNumber = "##number##";

/// What Punkt's patterns need to know about ASCII characters.
enum AsciiTrait : uint8_t {
  kBlank = 1,       // \s
  kEnds = 2,        // may end a sentence
  kNoWord = 4,      // is never within a word
  kNoStart = 8,     // begins no word
  kCloses = 16,     // belongs to the sentence before it
  kMayEndWord = 32  // a word may end before it
};

constexpr std::array<uint8_t, 256> ascii_table() {
  std::array<uint8_t, 256> table{};
  const auto mark = [&](std::string_view characters, int trait) {
    for (const char c : characters) table[static_cast<unsigned char>(c)] |= static_cast<uint8_t>(trait);
  };
  mark("\t\n\v\f\r ", kBlank | kMayEndWord);
  mark(".?!", kEnds);
  mark(")\";}]*:@'({[?!", kNoWord | kMayEndWord);
  mark("(\"`{[:;&#*@)}]-,", kNoStart);
  mark("\"')]}", kCloses);
  mark("-.,", kMayEndWord);
  for (size_t c = 0x80; c < 256; ++c) table[c] = kMayEndWord;
  return table;
}
constexpr std::array<uint8_t, 256> kAscii = ascii_table();

bool ascii_has(char c, int traits) {
  return kAscii[static_cast<unsigned char>(c)] & traits;
}

bool is_ascii(char c) {
  return static_cast<signed char>(c) >= 0;
}

/// Reads the characters of a text. A function named after a kind of character returns the length in bytes of
/// the character at `at` if it is of that kind, otherwise 0.
struct Reader {
  std::string_view text;

  bool at_end(size_t at) const { return at == text.size(); }
  size_t bytes(size_t at) const { return character_bytes(text[at]); }
  uint32_t character(size_t at) const { return code_point_at(text.substr(at)).value; }

  size_t blank(size_t at) const {
    if (is_ascii(text[at])) return ascii_has(text[at], kBlank);
    return is_space(character(at)) ? bytes(at) : 0;
  }
  /// ‘ ’ “ ” « », treated as their ASCII forms.
  size_t quote(size_t at) const {
    if (text[at] == '\xC2') return text[at + 1] == '\xAB' || text[at + 1] == '\xBB' ? 2 : 0;
    if (text[at] != '\xE2' || text[at + 1] != '\x80') return 0;
    const char last = text[at + 2];
    return last == '\x98' || last == '\x99' || last == '\x9C' || last == '\x9D' ? 3 : 0;
  }
  size_t no_word(size_t at) const {
    return is_ascii(text[at]) ? size_t{ascii_has(text[at], kNoWord)} : quote(at);
  }
  size_t closing(size_t at) const {
    return is_ascii(text[at]) ? size_t{ascii_has(text[at], kCloses)} : quote(at);
  }
  size_t skip_blanks(size_t at) const {
    while (!at_end(at)) {
      const size_t n = blank(at);
      if (n == 0) break;
      at += n;
    }
    return at;
  }
  size_t skip_word(size_t at) const {  // the position of the next blank
    while (!at_end(at) && blank(at) == 0) at += bytes(at);
    return at;
  }
};

/// The size that str.rstrip() leaves.
size_t stripped_size(std::string_view text) {
  const Reader reader{text};
  size_t end = text.size();
  while (end > 0) {
    const size_t at = character_begin(text, end - 1);
    if (!is_python_space(reader.character(at))) break;
    end = at;
  }
  return end;
}

bool is_blank_line(std::string_view line) {
  const Reader reader{line};
  for (size_t at = 0; at < line.size(); at += reader.bytes(at))
    if (!is_python_space(reader.character(at))) return false;
  return true;
}

/// A place where a sentence may end, and what decides whether it does.
struct Candidate {
  size_t begin = 0,
         end = 0;  // the pattern's match, which ends after the period (and the blanks, if they are kept)
  size_t context_end = 0;           // end of the text that decides, which goes beyond the match
  std::optional<size_t> next = {};  // the next word, if blanks precede it
};

/// Punkt's _period_context_fmt: a period (or ? or !), and after it a character that is never part of a word,
/// or blanks and a word.
std::optional<Candidate> next_candidate(const Reader& in, size_t from) {
  for (size_t at = from; at + 1 < in.text.size(); ++at) {
    if (!ascii_has(in.text[at], kEnds)) continue;
    const size_t after = at + 1;
    if (const size_t n = in.no_word(after)) return Candidate{at, after, after + n};
    const size_t word = in.skip_blanks(after);
    if (word == after || in.at_end(word)) continue;
    return Candidate{at, after, in.skip_word(word), word};
  }
  return std::nullopt;
}

/// The next candidate as Megatron's CustomLanguageVars finds it. The match is a word up to its last period
/// that something follows, with the blanks after it.
std::optional<Candidate> next_word_candidate(const Reader& in, size_t from) {
  while (true) {
    const size_t begin = in.skip_blanks(from);
    if (in.at_end(begin)) return std::nullopt;
    const size_t word_end = in.skip_word(begin);
    for (size_t end = word_end; end > begin; --end) {
      if (!ascii_has(in.text[end - 1], kEnds)) continue;
      const size_t after = end == word_end ? in.skip_blanks(end) : end;
      if (in.at_end(after)) continue;
      if (const size_t n = in.no_word(after)) return Candidate{begin, after, after + n};
      return Candidate{begin, after, end == word_end ? in.skip_word(after) : word_end, after};
    }
    from = word_end;
  }
}

/// A word of a context, as Punkt's word tokenizer splits it.
struct Word {
  std::string_view text;
  std::string lower;  // the word's type, unless it is a number
  bool number = false;
  bool period = false;  // ends with a period
  bool ends_sentence = false, abbreviation = false, ellipsis = false;

  std::string_view type() const { return number ? kNumber : std::string_view(lower); }
  std::string_view type_without_period() const {
    const std::string_view whole = type();
    return whole.size() > 1 && whole.ends_with('.') ? whole.substr(0, whole.size() - 1) : whole;
  }
  /// The type that counts when this is the word after a possible end of a sentence.
  std::string_view type_as_next() const { return ends_sentence ? type_without_period() : type(); }
  PunktChar first() const { return punkt_char(code_point_at(text).value); }
  bool is_initial() const {
    const size_t bytes = character_bytes(text[0]);
    return text.size() == bytes + 1 && period && first().is_letter();
  }
};

/// Length of \.\.+ or --+ or three or more periods with single blanks between them, which NLTK takes for one
/// word; 0: there is none.
size_t ellipsis_or_dash(const Reader& in, size_t at) {
  const char c = in.text[at];
  if ((c != '-' && c != '.') || at + 1 == in.text.size()) return 0;
  if (in.text[at + 1] == c) return std::min(in.text.find_first_not_of(c, at), in.text.size()) - at;
  if (c == '-') return 0;
  size_t end = at, spaced = 0, last = at;  // `last`: the period before the last blank
  while (end + 1 < in.text.size() && in.text[end] == '.') {
    const size_t n = in.blank(end + 1);
    if (n == 0) break;
    last = end;
    end += 1 + n;
    ++spaced;
  }
  if (spaced >= 2 && end < in.text.size() && in.text[end] == '.') return end + 1 - at;
  return spaced >= 3 ? last + 1 - at : 0;
}

/// The words of one line, one after the other.
class WordCutter {
 public:
  explicit WordCutter(std::string_view line) : in_{line} {}

  /// The next word; empty at the end of the line.
  std::string_view next() {
    at_ = in_.skip_blanks(at_);
    if (in_.at_end(at_)) return {};
    const size_t begin = std::exchange(at_, end_of_word(at_));
    return in_.text.substr(begin, at_ - begin);
  }

 private:
  size_t end_of_word(size_t at) const {
    if (const size_t n = ellipsis_or_dash(in_, at)) return at + n;
    const bool starts = !ascii_has(in_.text[at], kNoStart);
    at += in_.bytes(at);
    while (starts && !ends_before(at)) at += in_.bytes(at);
    return at;
  }
  bool ends_before(size_t at) const {
    if (in_.at_end(at)) return true;
    if (!ascii_has(in_.text[at], kMayEndWord)) return false;
    return is_break(at) || (in_.text[at] == ',' && (in_.at_end(at + 1) || is_break(at + 1)));
  }
  bool is_break(size_t at) const {
    return in_.blank(at) > 0 || in_.no_word(at) > 0 || ellipsis_or_dash(in_, at) > 0;
  }

  Reader in_;
  size_t at_ = 0;
};

/// ^-?[\.,]?\d[\d,\.-]*\.?$
bool is_number(std::string_view word) {
  size_t at = 0;
  if (word[at] == '-') ++at;
  if (at < word.size() && (word[at] == '.' || word[at] == ',')) ++at;
  bool digits = false;
  for (; at < word.size(); at += character_bytes(word[at])) {
    const char c = word[at];
    const bool digit =
        is_ascii(c) ? c >= '0' && c <= '9' : punkt_char(code_point_at(word.substr(at)).value).is_digit();
    if (!digit && (!digits || (c != ',' && c != '.' && c != '-'))) return false;
    digits = true;
  }
  return digits;
}

enum class Starts { kYes, kNo, kUnknown };

/// Decides whether a sentence ends within a context. Reused for many contexts, so that its memory is
/// allocated once.
class BoundaryClassifier {
 public:
  explicit BoundaryClassifier(const PunktParameters& parameters) : parameters_(parameters) {}

  /// Punkt's text_contains_sentbreak: whether a sentence ends at a word that is not the last.
  bool finds_end(std::string_view context) {
    bool first = true;
    for (std::string_view rest = context; !rest.empty();) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (is_blank_line(line)) continue;
      WordCutter cutter(line);
      for (std::string_view word = cutter.next(); !word.empty(); word = cutter.next()) {
        look_at(word, next_);
        if (!std::exchange(first, false) && ends_before_next()) return true;
        std::swap(word_, next_);
      }
    }
    return false;
  }

 private:
  /// Fills `word` with what can be said from the word alone (NLTK's first pass).
  void look_at(std::string_view text, Word& word) const {
    word.text = text;
    word.number = is_number(text);
    word.lower.clear();
    append_lower(text, word.lower);
    word.period = text.ends_with('.');
    word.ends_sentence = word.abbreviation = word.ellipsis = false;
    if (text.size() == 1 && ascii_has(text[0], kEnds))
      word.ends_sentence = true;
    else if (text.size() > 1 && text.find_first_not_of('.') == std::string_view::npos)
      word.ellipsis = true;
    else if (word.period && !text.ends_with(".."))
      (is_abbreviation(word) ? word.abbreviation : word.ends_sentence) = true;
  }

  bool is_abbreviation(const Word& word) const {
    const std::string_view whole = std::string_view(word.lower).substr(0, word.lower.size() - 1);
    if (parameters_.abbreviations.contains(whole)) return true;
    const size_t dash = whole.rfind('-');
    return dash != std::string_view::npos && parameters_.abbreviations.contains(whole.substr(dash + 1));
  }

  /// Whether a sentence ends between the word and the next one, judged by both (NLTK's second pass).
  bool ends_before_next() {
    if (!word_.period) return word_.ends_sentence;
    const std::string_view type = word_.type_without_period(), next = next_.type_as_next();
    if (is_collocation(type, next)) return false;
    const bool initial = word_.is_initial();
    if ((word_.abbreviation || word_.ellipsis) && !initial) {
      if (starts_sentence(next_) == Starts::kYes) return true;
      if (next_.first().is_upper() && parameters_.sentence_starters.contains(next)) return true;
    }
    if ((initial || type == kNumber) && continues(initial, next)) return false;
    return word_.ends_sentence;
  }

  /// Whether the sentence continues after an initial or a number with the next word, whose type is `next`.
  bool continues(bool initial, std::string_view next) {
    const Starts starts = starts_sentence(next_);
    if (starts != Starts::kUnknown) return starts == Starts::kNo;
    return initial && next_.first().is_upper() && !(context_of(next) & kSeenLower);
  }

  bool is_collocation(std::string_view first, std::string_view second) {
    if (parameters_.collocations.empty()) return false;
    pair_.assign(first);
    pair_ += '\t';
    pair_ += second;
    return parameters_.collocations.contains(pair_);
  }

  uint32_t context_of(std::string_view type) const {
    const auto found = parameters_.contexts.find(type);
    return found == parameters_.contexts.end() ? 0 : found->second;
  }

  /// Whether `word` begins a sentence, judged by its case here and in training.
  Starts starts_sentence(const Word& word) const {
    if (word.text.size() == 1 && std::string_view(";:,.!?").find(word.text[0]) != std::string_view::npos)
      return Starts::kNo;
    const uint32_t seen = context_of(word.type_as_next());
    if (word.first().is_upper() && (seen & kSeenLower) && !(seen & kInsideUpper)) return Starts::kYes;
    if (word.first().is_lower() && ((seen & kSeenUpper) || !(seen & kBeginsLower))) return Starts::kNo;
    return Starts::kUnknown;
  }

  const PunktParameters& parameters_;
  Word word_, next_;
  std::string pair_;
};

/// The candidates, each with the text that decides about it: from the word before it to what follows it.
/// Where these texts overlap ("!!!"), only the last candidate counts: NLTK keeps only one of several
/// overlapping matches.
class Contexts {
 public:
  Contexts(std::string_view text, SentenceSplitter::Blanks blanks) : in_{text}, blanks_(blanks) {}

  /// Calls take(candidate, context) for each candidate that counts.
  template <class Take>
  void each(const Take& take) {
    std::optional<Candidate> before;
    size_t begin = 0;  // where the context of `before` begins
    for (auto found = next(0); found; found = next(found->end)) {
      const size_t from = before ? before->begin : 0;
      const size_t word = after_last_blank(from, found->begin).value_or(begin);
      if (before && from <= word) take(*before, context(begin, *before));
      before = found;
      begin = word;
    }
    if (before) take(*before, context(begin, *before));
  }

 private:
  std::optional<Candidate> next(size_t from) const {
    return blanks_ == SentenceSplitter::Blanks::kKeep ? next_word_candidate(in_, from)
                                                      : next_candidate(in_, from);
  }
  std::string_view context(size_t begin, const Candidate& candidate) const {
    return in_.text.substr(begin, candidate.context_end - begin);
  }
  /// The place after the last ASCII blank of [from, to). A blank at `from` does not count, as in NLTK.
  std::optional<size_t> after_last_blank(size_t from, size_t to) const {
    for (size_t at = to; at > from + 1; --at)
      if (ascii_has(in_.text[at - 1], kBlank)) return at;
    return std::nullopt;
  }

  Reader in_;
  SentenceSplitter::Blanks blanks_;
};

/// Takes cuts in order and assigns closing quotes and brackets after a cut to the sentence before it.
class Realigner {
 public:
  Realigner(std::string_view text, const SentenceSplitter::TakeSentence& take) : text_(text), take_(take) {}

  void add(size_t begin, size_t end) {
    if (open_) {
      const Closing closing = closing_in(part(begin, end));
      give(begin_, closing.bytes > 0 ? begin + closing.bytes : end_);
      begin_ = begin + closing.with_blanks;
    } else {
      begin_ = begin;
    }
    end_ = end;
    open_ = true;
  }
  void finish() const {
    if (open_) give(begin_, end_);
  }

 private:
  struct Closing {
    size_t bytes = 0, with_blanks = 0;
  };
  /// ["')\]}‘’“”«»]+?(?:\s+|(?=--)|$)
  static Closing closing_in(std::string_view sentence) {
    const Reader in{sentence};
    for (size_t at = 0; !in.at_end(at);) {
      const size_t n = in.closing(at);
      if (n == 0) return {};
      at += n;
      const size_t after = in.skip_blanks(at);
      if (after > at || in.at_end(at) || sentence.substr(at).starts_with("--")) return {at, after};
    }
    return {};
  }
  std::string_view part(size_t begin, size_t end) const {
    return begin < end ? text_.substr(begin, end - begin) : std::string_view();
  }
  void give(size_t begin, size_t end) const {
    if (begin < end) take_(text_.substr(begin, end - begin));
  }

  std::string_view text_;
  const SentenceSplitter::TakeSentence& take_;
  bool open_ = false;
  size_t begin_ = 0, end_ = 0;
};

}  // namespace

SentenceSplitter::SentenceSplitter(PunktParameters parameters, Blanks blanks)
    : parameters_(std::move(parameters)), blanks_(blanks) {}

void SentenceSplitter::split(std::string_view utf8, const TakeSentence& take) const {
  BoundaryClassifier classifier(parameters_);
  Realigner sentences(utf8, take);
  size_t begin = 0;
  Contexts(utf8, blanks_).each([&](const Candidate& candidate, std::string_view context) {
    if (!classifier.finds_end(context)) return;
    sentences.add(begin, candidate.end);
    begin = candidate.next.value_or(candidate.end);
  });
  sentences.add(begin, stripped_size(utf8));
  sentences.finish();
}

void SentenceSplitter::split_in_parts(std::string_view utf8, const TakeSentence& take) const {
  while (!utf8.empty()) {
    size_t end = 0;
    if (utf8.size() <= kPartCharacters) end = utf8.size();
    for (size_t n = 0; n < kPartCharacters && end < utf8.size(); ++n) end += character_bytes(utf8[end]);
    split(utf8.substr(0, end), take);
    utf8.remove_prefix(end);
  }
}

}  // namespace megalith
