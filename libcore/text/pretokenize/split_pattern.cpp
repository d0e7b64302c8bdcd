#include "libcore/text/pretokenize/split_pattern.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/patterns/compiled_pattern.h"
#include "libcore/text/pretokenize/character_patterns.h"
#include "libcore/text/pretokenize/gpt2_scan.h"
#include "libcore/text/pretokenize/pattern_sequence.h"
#include "libcore/text/pretokenize/word_scan.h"
#include "libcore/text/unicode/byte_alphabet.h"
#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

struct Char {
  uint32_t value;
  CharTraits traits;
  size_t bytes;
  CharKind kind() const { return traits.kind(); }
  bool ends_line() const { return value == '\n' || value == '\r'; }
};

Char char_at(const char* at, const Window& text) {
  const auto byte = static_cast<unsigned char>(*at);
  if (byte < 0x80) return {byte, ascii_traits(byte), 1};
  const CodePoint c = code_point_at({at, text.end()});
  return {c.value, char_traits(c.value), c.bytes};
}

/// The end of the characters from `at` on for which `joins` is true, at most `max_count` of them.
template <class Joins>
const char* run_end(const char* at, const Window& text, Joins&& joins, size_t max_count = SIZE_MAX) {
  for (; max_count > 0 && text.has(at); --max_count) {
    const Char c = char_at(at, text);
    if (!joins(c)) break;
    at += c.bytes;
  }
  return at;
}

const char* run_end(const char* at, const Window& text, KindSet kinds, size_t max_count) {
  return run_end(
      at, text, [&](const Char& c) { return kinds.has(c.kind()); }, max_count);
}

/// The end of the characters of these kinds from `at` on, with a fast path for ASCII, the usual case. The
/// fast path need not check for stops: after ASCII, a window does not stop at ASCII of such a kind.
const char* run_end(const char* at, const Window& text, KindSet kinds) {
  if (!text.has(at)) return at;
  for (const char* const end = text.end(); at < end; ++at) {
    const auto byte = static_cast<unsigned char>(*at);
    if (byte >= 0x80) return run_end(at, text, kinds, SIZE_MAX);
    if (!kinds.has(ascii_traits(byte).kind())) return at;
  }
  text.has(at);
  return at;
}

constexpr KindSet kLetters = KindSet::of(CharKind::kUpper, CharKind::kLower, CharKind::kLetter);
constexpr KindSet kMarks = KindSet::of(CharKind::kMark);
constexpr KindSet kNumbers = KindSet::of(CharKind::kNumber);
constexpr KindSet kSpaces = KindSet::of(CharKind::kSpace);
constexpr KindSet kSigns = KindSet::of(CharKind::kPunctuation, CharKind::kSymbol);
constexpr KindSet kUpperSide = KindSet::of(CharKind::kUpper, CharKind::kLetter, CharKind::kMark);
constexpr KindSet kLowerSide = KindSet::of(CharKind::kLower, CharKind::kLetter, CharKind::kMark);
constexpr KindSet kBothSides = KindSet::of(CharKind::kLetter, CharKind::kMark);

/// How a word may be spelt: which letters it has, and whether upper case may follow lower case in it.
enum class Words { kPlain, kWithMarks, kCased };
enum class Contractions { kNone, kFirst, kAfterWords };

/// The family of patterns that began with GPT-4's:
///   contraction | [^\r\n lead]?word | number{1,digits} | ?[signs]+[\r\n tail]* | \s*[\r\n]+ | \s+(?!\S) |
///   \s+
struct Rules {
  Contractions contractions;
  Words words;
  KindSet no_lead;  // what must not precede the letters of a word, besides \r and \n
  size_t digits;    // most digits of a number; 0: the pattern has no numbers
  KindSet signs;
  bool slash_tail = false;      // "/" belongs to the tail of signs too
  bool sign_with_word = false;  // tried first: an ASCII sign and the ASCII letters after it
};

/// (?i:'s|'t|'re|'ve|'m|'ll|'d), where "s" also stands for U+017F.
const char* contraction_end(const char* at, const Window& text) {
  if (!text.has(at) || *at != '\'' || !text.has(at + 1)) return at;
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const char letters[] = {lower(at[1]), text.has(at + 2) ? lower(at[2]) : '\0'};
  if (std::string_view("stmd").find(letters[0]) != std::string_view::npos) return at + 2;
  for (const char* const two : {"re", "ve", "ll", "\xC5\xBF"})
    if (letters[0] == two[0] && letters[1] == two[1]) return at + 3;
  return at;
}

/// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+
const char* lower_word_end(const char* at, const Window& text) {
  const char* last_both = nullptr;  // after the last character that is in both sets
  const char* const upper = run_end(at, text, [&](const Char& c) {
    if (!kUpperSide.has(c.kind())) return false;
    at += c.bytes;
    if (kBothSides.has(c.kind())) last_both = at;
    return true;
  });
  const char* const lower = run_end(upper, text, kLowerSide);
  if (lower > upper) return lower;
  // Backtracks as a regex engine does: the first set gives characters back until the second finds one.
  return last_both ? last_both : nullptr;
}

/// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*
const char* upper_word_end(const char* at, const Window& text) {
  const char* const upper = run_end(at, text, kUpperSide);
  return upper > at ? run_end(upper, text, kLowerSide) : nullptr;
}

/// The end of the word that `word_end` finds after a lead character, or else of the word without one; nullptr
/// if there is neither.
template <class End>
const char* led_word_end(const char* at, const char* after_lead, const Window& text, End&& word_end) {
  if (after_lead)
    if (const char* const end = word_end(after_lead, text)) return end;
  return word_end(at, text);
}

const char* word_end(const Rules& rules, const char* at, const Window& text) {
  const Char first = char_at(at, text);
  const bool may_lead = !first.ends_line() && !rules.no_lead.has(first.kind());
  const char* const after = may_lead ? at + first.bytes : nullptr;
  if (rules.words == Words::kCased) {
    if (const char* const end = led_word_end(at, after, text, lower_word_end)) return end;
    return led_word_end(at, after, text, upper_word_end);
  }
  const KindSet letters = rules.words == Words::kPlain ? kLetters : kLetters | kMarks;
  return led_word_end(at, after, text, [&](const char* begin, const Window& t) -> const char* {
    const char* const end = run_end(begin, t, letters);
    return end > begin ? end : nullptr;
  });
}

///  ?[signs]+[\r\n]*
const char* signs_end(const Rules& rules, const char* at, const Window& text) {
  const char* const begin = *at == ' ' ? at + 1 : at;
  const char* const end = run_end(begin, text, rules.signs);
  if (end == begin) return at;
  return run_end(end, text,
                 [&](const Char& c) { return c.ends_line() || (rules.slash_tail && c.value == '/'); });
}

/// \s*[\r\n]+|\s+(?!\S)|\s+
const char* spaces_end(const char* at, const Window& text) {
  const char* const begin = at;
  const char* line_end = nullptr;  // the place after the last line end
  const char* last = at;           // the last space
  const char* const end = run_end(at, text, [&](const Char& c) {
    if (!kSpaces.has(c.kind())) return false;
    last = at;
    at += c.bytes;
    if (c.ends_line()) line_end = at;
    return true;
  });
  if (line_end) return line_end;
  return text.has(end) && last > begin ? last : end;  // the last space belongs to what follows
}

constexpr bool is_ascii_letter(uint32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+
const char* sign_word_end(const char* at, const Window& text) {
  if (*at <= ' ' || *at > '~' || kNumbers.has(char_at(at, text).kind()) ||
      is_ascii_letter(static_cast<unsigned char>(*at)))
    return at;
  const char* const end = run_end(at + 1, text, [](const Char& c) { return is_ascii_letter(c.value); });
  return end > at + 1 ? end : at;
}

/// The end of the match that begins at `at`, by the pattern with these rules; `at` if there is none.
const char* match(const Rules& rules, const char* at, const Window& text) {
  if (rules.sign_with_word)
    if (const char* const end = sign_word_end(at, text); end > at) return end;
  if (rules.contractions == Contractions::kFirst)
    if (const char* const end = contraction_end(at, text); end > at) return end;
  if (const char* const end = word_end(rules, at, text))
    return rules.contractions == Contractions::kAfterWords ? contraction_end(end, text) : end;
  if (rules.digits > 0)
    if (const char* const end = run_end(at, text, kNumbers, rules.digits); end > at) return end;
  if (const char* const end = signs_end(rules, at, text); end > at) return end;
  return kSpaces.has(char_at(at, text).kind()) ? spaces_end(at, text) : at;
}

constexpr KindSet kNoWordNoSpace = ~(kLetters | kNumbers | kSpaces);
constexpr Rules kLlama3 = {Contractions::kFirst, Words::kPlain, kLetters | kNumbers, 3, kNoWordNoSpace};
constexpr Rules kQwen2 = {Contractions::kFirst, Words::kPlain, kLetters | kNumbers, 1, kNoWordNoSpace};
constexpr Rules kQwen35 = {Contractions::kFirst, Words::kWithMarks, kLetters | kNumbers, 1,
                           ~(kLetters | kMarks | kNumbers | kSpaces)};
constexpr Rules kO200k = {
    Contractions::kAfterWords, Words::kCased, kLetters | kNumbers, 3, kNoWordNoSpace, true};
constexpr Rules kTekken = {Contractions::kNone, Words::kCased, kLetters | kNumbers, 1, kNoWordNoSpace, true};
constexpr Rules kNemotron = {Contractions::kNone, Words::kPlain, kLetters | kNumbers, 1, kNoWordNoSpace};
constexpr Rules kDeepSeek3 = {
    Contractions::kNone, Words::kWithMarks, kLetters | kSigns, 0, kSigns, false, true};

// DeepSeek-V3 has two patterns, \p{N}{1,3} and [\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+, before this third
// one. The two split off numbers and runs of Han and Kana, in which the third finds nothing.
bool is_han_or_kana(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF);
}
bool ends_han_or_kana(const char* at, const char* end) {
  return !is_han_or_kana(char_at(at, Window(end, false)).value);
}
bool ends_rest(const char* at, const char* end) {
  const Char c = char_at(at, Window(end, false));
  return kNumbers.has(c.kind()) || is_han_or_kana(c.value);
}

/// Length of the first pretoken by the three patterns; each splits the pieces of the one before.
size_t first_deepseek3_pretoken(std::string_view utf8) {
  const char* const begin = utf8.data();
  const char* const end = begin + utf8.size();
  const Char first = char_at(begin, Window(end, false));
  const auto size = [&](const char* at) { return static_cast<size_t>(at - begin); };
  if (kNumbers.has(first.kind())) return size(run_end(begin, Window(end, false), kNumbers, 3));
  const Window piece(end, false, is_han_or_kana(first.value) ? ends_han_or_kana : ends_rest);
  if (const char* const matched = match(kDeepSeek3, begin, piece); matched > begin) return size(matched);
  const char* at = begin + first.bytes;  // the text between matches is a pretoken
  while (piece.has(at) && match(kDeepSeek3, at, piece) == at) at += char_at(at, piece).bytes;
  return size(at);
}

bool are_deepseek3(const std::vector<SplitPattern>& patterns) {
  return patterns.size() == 3 && patterns[0].name == "\\p{N}{1,3}" &&
         patterns[1].name == "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+" &&
         patterns[2].name == "deepseek-v3";
}

constexpr const char* kGpt2Name = "gpt-2";
constexpr size_t kGpt2LooksAhead = 8;  // the most bytes that a match reads after its end

const char* gpt2_match(const char* at, const Window& text) {
  const char* const end = at + gpt2_pretoken({at, static_cast<size_t>(text.end() - at)});
  if (static_cast<size_t>(text.end() - end) < kGpt2LooksAhead) text.has(text.end());
  return end;
}

template <const Rules& kRules>
size_t first_pretoken(std::string_view utf8) {
  const Window text(utf8.data() + utf8.size(), false);
  return static_cast<size_t>(match(kRules, utf8.data(), text) - utf8.data());
}

struct Known {
  const char* name;
  const char* regex;  // with line ends written as \r and \n
  const char* (*match)(const char*, const Window&);
  FindPretokens (*find)();  // returns the fastest implementation on this processor; nullptr: the matches
                            // leave gaps in texts
  std::optional<size_t> looks_ahead = {};  // as in SplitPattern

  SplitPattern made() const {
    return {.name = name, .match = match, .find = find ? find() : nullptr, .looks_ahead = looks_ahead};
  }
};

FindPretokens find_gpt2() {
  return pretokenizer(PretokenPattern::kGpt2);
}

template <const Rules& kRules, WordPattern kPattern>
FindPretokens find_in_blocks() {
  return find_words(kPattern, chosen_isa(), find_one_by_one<first_pretoken<kRules>>);
}

template <const Rules& kRules>
const char* match_by(const char* at, const Window& text) {
  return match(kRules, at, text);
}

const std::vector<Known>& known_patterns() {
  static const std::vector<Known> kKnown = {
      {kGpt2Name, R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", gpt2_match,
       find_gpt2, kGpt2LooksAhead},
      {"llama-3",
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       match_by<kLlama3>, find_in_blocks<kLlama3, WordPattern::kLlama3>},
      {"qwen2",
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       match_by<kQwen2>, find_in_blocks<kQwen2, WordPattern::kQwen2>},
      {"qwen3.5",
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       match_by<kQwen35>, find_in_blocks<kQwen35, WordPattern::kQwen35>},
      {"o200k",
       R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       match_by<kO200k>, find_in_blocks<kO200k, WordPattern::kO200k>},
      {"tekken",  // also Megatron's "v2" for tiktoken
       R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       match_by<kTekken>, find_in_blocks<kTekken, WordPattern::kTekken>},
      {"nemotron",  // Megatron's "v1" for tiktoken: \s*[\r\n] also ends at the last line end
       R"([^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
       match_by<kNemotron>, find_in_blocks<kNemotron, WordPattern::kNemotron>},
      {"deepseek-v3",
       R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       match_by<kDeepSeek3>, nullptr},
  };
  return kKnown;
}

using Class = CompiledPattern::Class;

/// The end of the match of a compiled pattern that begins at `at`, or `at`. read(at, text) gives the class of
/// the character at a place, and its bytes.
template <class Read>
const char* compiled_match(const CompiledPattern& pattern, const char* at, const Window& text,
                           const Read& read) {
  const char* last = at;
  CompiledPattern::Run run(pattern);
  while (text.has(at)) {
    const auto [next, bytes] = read(at, text);
    const CompiledPattern::Run::Step step = run.step(next);
    if (step.matched) last = at;
    if (!step.goes_on) return last;
    at += bytes;
  }
  return run.matched_at_end() ? at : last;
}

const char* compiled_match(const CompiledPattern& pattern, const char* at, const Window& text) {
  return compiled_match(pattern, at, text, [&](const char* place, const Window& window) {
    const auto byte = static_cast<unsigned char>(*place);
    if (byte < 0x80) return std::pair(pattern.class_of_ascii(byte), size_t{1});
    const CodePoint c = code_point_at({place, window.end()});
    return std::pair(pattern.class_of(c.value), c.bytes);
  });
}

SplitPattern compiled_pattern(std::string name, const std::shared_ptr<const CompiledPattern>& pattern) {
  SplitPattern made{.name = std::move(name), .match = [pattern](const char* at, const Window& text) {
                      return compiled_match(*pattern, at, text);
                    }};
  made.begins = [pattern](uint32_t c) { return pattern->may_begin(pattern->class_of(c)); };
  if (!pattern->covers_texts()) return made;
  const auto first = [pattern](std::string_view utf8) {
    const Window text(utf8.data() + utf8.size(), false);
    return static_cast<size_t>(compiled_match(*pattern, utf8.data(), text) - utf8.data());
  };
  made.find = [first](std::string_view utf8, std::span<uint32_t> ends) {
    return find_one_by_one(first, utf8, ends);
  };
  return made;
}

/// Whether the expression is the name of a pattern with other matches. pretokenizer() knows some by their
/// names.
bool is_other_name(std::string_view regex) {
  const auto& known = known_patterns();
  return regex == kDigitsName ||
         std::any_of(known.begin(), known.end(), [&](const Known& k) { return regex == k.name; });
}

}  // namespace

FirstPretoken first_cased_pretoken(WordPattern pattern) {
  if (pattern == WordPattern::kO200k) return first_pretoken<kO200k>;
  if (pattern == WordPattern::kTekken) return first_pretoken<kTekken>;
  fail(ErrorKind::kInternal, "the pattern ", static_cast<int>(pattern), " of words has no letters by case");
}

SplitPattern split_pattern(std::string_view regex) {
  std::string written;  // files write line ends literally or escaped
  for (char c : regex) written += c == '\r' ? "\\r" : c == '\n' ? "\\n" : std::string(1, c);
  for (const Known& known : known_patterns())
    if (written == known.regex) return known.made();
  return compiled_pattern(is_other_name(written) ? concat("expression ", written) : written,
                          std::make_shared<const CompiledPattern>(written));
}

SplitPattern split_pattern_of_bytes(std::string_view regex) {
  const auto pattern = std::make_shared<const CompiledPattern>(regex);
  std::array<Class, 256> classes;
  for (size_t byte = 0; byte < classes.size(); ++byte)
    classes[byte] = pattern->class_of(byte_to_code_point(static_cast<uint8_t>(byte)));
  const auto read = [classes](const char* at, const Window&) {
    return std::pair(classes[static_cast<uint8_t>(*at)], size_t{1});
  };
  return {.name = concat("bytes ", regex),
          .match = [pattern, read](const char* at,
                                   const Window& text) { return compiled_match(*pattern, at, text, read); },
          .of_bytes = true};
}

SplitPattern text_pattern(const std::string& text, TextCut cut) {
  const auto match_one = [text](const char* at, const Window& window) {
    for (size_t i = 0; i < text.size(); ++i)
      if (!window.has(at + i) || at[i] != text[i]) return at;
    return at + text.size();
  };
  const auto find = [text](const char* at, const Window& window) {
    const size_t found = std::string_view(at, static_cast<size_t>(window.end() - at)).find(text);
    return found == std::string_view::npos ? window.end() : at + found;
  };
  SplitPattern made;
  switch (cut) {
    case TextCut::kBefore:
      return mark_pattern(text, true);
    case TextCut::kAround:
      made = {.name = "text ", .match = match_one};
      break;
    case TextCut::kAroundRuns:
      made = {.name = "texts ", .match = [match_one](const char* at, const Window& window) {
                for (const char* end; (end = match_one(at, window)) > at;) at = end;
                return at;
              }};
      break;
    case TextCut::kAfter:
      made = {.name = "up to ", .match = [find, size = text.size()](const char* at, const Window& window) {
                return find(at, window) + size;
              }};
      // The text up to the end of the last occurrence is matched whole, so nothing is skipped in it.
      made.skip = [find](const char* at, const Window& window) {
        return find(at, window) == window.end() ? window.end() : at;
      };
      break;
  }
  made.name += text;
  return made;
}

SplitPattern gpt2_split_pattern() {
  return known_patterns().front().made();
}

SplitPattern mark_pattern(const std::string& mark, bool each) {
  const auto first = [mark, each](std::string_view utf8) {
    size_t at = 0;
    if (each)
      at = utf8.starts_with(mark) ? mark.size() : 0;
    else
      while (utf8.substr(at).starts_with(mark)) at += mark.size();
    return std::min(utf8.find(mark, at), utf8.size());
  };
  const auto match = [first](const char* at, const Window& text) {
    const char* const end = at + first({at, static_cast<size_t>(text.end() - at)});
    if (end == text.end()) text.has(end);
    return end;
  };
  return {.name = (each ? "each " : "runs of ") + mark,
          .match = match,
          .find = [first](std::string_view utf8, std::span<uint32_t> ends) {
            return find_one_by_one(first, utf8, ends);
          }};
}

FindPretokens pretokenizer(std::vector<SplitPattern> patterns) {
  if (patterns.size() == 1 && patterns[0].find) return patterns[0].find;
  if (are_deepseek3(patterns))
    return find_words(WordPattern::kDeepSeek3, chosen_isa(), find_one_by_one<first_deepseek3_pretoken>);
  if (patterns.size() == 2 && patterns[0].name == kDigitsName && patterns[1].name == kGpt2Name)
    if (const FindGpt2 find = megalith::find_gpt2_digits(chosen_isa())) return find;
  return PatternSequence(std::move(patterns));
}

}  // namespace megalith
