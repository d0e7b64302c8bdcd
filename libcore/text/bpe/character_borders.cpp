#include "libcore/text/bpe/character_borders.h"

#include <algorithm>
#include <bit>

#include "libcore/base/utf8.h"
#include "libcore/text/pretokenize/pretokenizer.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

constexpr uint32_t kAscii = 128, kNone = UINT32_MAX;
constexpr size_t kAsciiWords = size_t{2} * kAscii;

uint32_t last_character(std::string_view text) {
  return code_point_at(text.substr(character_begin(text, text.size() - 1))).value;
}

void set(std::vector<uint64_t>& bits, size_t at) {
  bits[at / 64] |= uint64_t{1} << (at % 64);
}

bool has(std::span<const uint64_t> bits, size_t at) {
  return (bits[at / 64] >> (at % 64) & 1) != 0;
}

size_t ascii_bit(uint32_t a, uint32_t b) {
  return size_t{a} * kAscii + b;
}

/// Bits of the code points that give no unknown token; empty if neighbouring unknown characters never give
/// one token together.
std::vector<uint64_t> known_characters(const CharacterIds& characters) {
  const CharacterIds::Unknown& unknown = characters.unknown();
  if (!unknown.id || !unknown.fuse || unknown.bytes[0] >= 0) return {};
  const auto last = static_cast<uint32_t>(characters.arrays().of_character.size());
  std::vector<uint64_t> known(last / 64 + 1);
  for (uint32_t c = 0; c < last; ++c)
    if (characters.is_known(c)) set(known, c);
  return known;
}

}  // namespace

/// The characters on both sides of the place where each merge joins its tokens.
std::vector<CharacterBorders::Pair> CharacterBorders::joined_pairs(const std::vector<std::string>& symbols,
                                                                   std::span<const TokenMerge> merges) {
  std::vector<Pair> pairs;
  for (const TokenMerge& merge : merges) {
    const std::string& left = symbols[static_cast<size_t>(merge.left)];
    const std::string& right = symbols[static_cast<size_t>(merge.right)];
    if (!left.empty() && !right.empty()) pairs.push_back({last_character(left), code_point_at(right).value});
  }
  return pairs;
}

CharacterBorders::CharacterBorders(const std::vector<std::string>& symbols,
                                   std::span<const TokenMerge> merges, const CharacterIds& characters) {
  arrays_.known = SharedArray(known_characters(characters));
  join(joined_pairs(symbols, merges));
}

CharacterBorders::CharacterBorders(std::span<const std::string> tokens, std::string_view mark) {
  always_cut_before(mark);
  std::vector<Pair> pairs;
  for (const std::string& token : tokens) {
    uint32_t before = kNone;
    for (std::string_view rest = token; !rest.empty();) {
      const CodePoint c = code_point_at(rest);
      if (before != kNone && c.value != cut_before_) pairs.push_back({before, c.value});
      before = c.value;
      rest.remove_prefix(c.bytes);
    }
  }
  join(std::move(pairs));
}

/// Makes the tables of the pairs between which texts are not cut.
void CharacterBorders::join(std::vector<Pair> pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  std::vector<uint64_t> ascii(kAsciiWords), others(std::bit_ceil(8 * pairs.size() + 64) / 64);
  shift_ = 64 - std::countr_zero(others.size() * 64);
  for (const Pair& pair : pairs)
    if (pair.a < kAscii && pair.b < kAscii)
      set(ascii, ascii_bit(pair.a, pair.b));
    else
      set(others, others_bit(pair.a, pair.b));
  for (uint32_t a = 0; a < kAscii; ++a)
    for (uint32_t b = 0; b < kAscii; ++b)
      if (may_be_unknown(a) && may_be_unknown(b)) set(ascii, ascii_bit(a, b));
  arrays_.ascii = SharedArray(std::move(ascii));
  arrays_.others = SharedArray(std::move(others));
}

CharacterBorders::CharacterBorders(Arrays arrays)
    : arrays_(std::move(arrays)), shift_(64 - std::countr_zero(arrays_.others.size() * 64)) {}

bool CharacterBorders::fit(const Arrays& arrays) {
  return arrays.ascii.size() == kAsciiWords && std::has_single_bit(arrays.others.size());
}

void CharacterBorders::keep_whole(std::vector<AddedToken> texts) {
  for (const AddedToken& token : texts) look_ahead_ = std::max(look_ahead_, token.text.size());
  whole_ = AddedTokens(std::move(texts));
}

void CharacterBorders::always_cut_before(std::string_view mark) {
  if (!mark.empty()) cut_before_ = code_point_at(mark).value;
}

size_t CharacterBorders::others_bit(uint32_t a, uint32_t b) const {
  return static_cast<size_t>((uint64_t{a} << 32 | b) * 0x9E3779B97F4A7C15u >> shift_);
}

bool CharacterBorders::may_be_unknown(uint32_t c) const {
  if (arrays_.known.empty()) return false;
  return c / 64 >= arrays_.known.size() || !has(arrays_.known.span(), c);
}

bool CharacterBorders::joins(uint32_t a, uint32_t b) const {
  if (a < kAscii && b < kAscii) return has(arrays_.ascii.span(), ascii_bit(a, b));
  if (b == cut_before_) return false;  // the table may say otherwise, since pairs share bits
  return has(arrays_.others.span(), others_bit(a, b)) || (may_be_unknown(a) && may_be_unknown(b));
}

/// The state of find().
struct CharacterBorders::Scan {
  std::string_view text;
  std::span<uint32_t> ends;
  size_t at = 0, count = 0;
  uint32_t before = kNone;  // the character before `at`; kNone: a pretoken has just ended there

  void end_here() { ends[count++] = static_cast<uint32_t>(at); }
  /// Where scanning stops at the latest: positions have 32 bits.
  size_t stop(size_t look_ahead) const { return std::min(text.size(), UINT32_MAX - look_ahead); }
};

/// Scans up to the first character that is not ASCII or may begin a text that is kept whole, or until `ends`
/// could be full. Almost every third character begins a pretoken: a branch for that would often be
/// mispredicted, so there is none.
void CharacterBorders::scan_ascii(Scan& scan) const {
  const char* const text = scan.text.data();
  const uint64_t* const ascii = arrays_.ascii.data();
  const size_t room = scan.ends.size() - 1 - scan.count;  // each character may end a pretoken
  const size_t stop = std::min(scan.stop(look_ahead_), scan.at + room);
  size_t at = scan.at, count = scan.count;
  uint32_t before = scan.before;
  for (; at < stop; ++at) {
    const auto c = static_cast<uint8_t>(text[at]);
    if (c >= kAscii || whole_.may_begin(text[at])) break;
    scan.ends[count] = static_cast<uint32_t>(at);
    count += (ascii[2 * before + c / 64] >> (c % 64) & 1) ^ 1;
    before = c;
  }
  scan.at = at;
  scan.count = count;
  scan.before = before;
}

size_t CharacterBorders::find(std::string_view utf8, std::span<uint32_t> ends) const {
  Scan scan{utf8, ends};
  const size_t stop = scan.stop(look_ahead_);
  while (scan.at < stop && scan.count + 2 <= ends.size()) {
    const std::string_view rest = utf8.substr(scan.at);
    if (const size_t whole = whole_.longest_at(rest); whole > 0) {
      if (scan.before != kNone) scan.end_here();
      scan.at += whole;
      scan.end_here();
      scan.before = kNone;
      continue;
    }
    const CodePoint c = code_point_at(rest);
    if (scan.before != kNone && !joins(scan.before, c.value)) scan.end_here();
    scan.before = c.value;
    scan.at += c.bytes;
    if (c.value < kAscii) scan_ascii(scan);
  }
  if (scan.at == utf8.size() && scan.before != kNone && scan.count < ends.size()) scan.end_here();
  if (scan.count == 0) refuse_giant_pretoken(utf8.size());
  return scan.count;
}

}  // namespace megalith
