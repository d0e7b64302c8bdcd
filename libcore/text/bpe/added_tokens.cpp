#include "libcore/text/bpe/added_tokens.h"

#include <algorithm>
#include <bit>

#include "libcore/base/utf8.h"
#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

void set_bit(size_t bit, std::vector<uint64_t>& bits) {
  bits[bit / 64] |= uint64_t{1} << (bit % 64);
}

/// The index at which the white space at the end of `utf8` begins.
size_t trailing_space(std::string_view utf8) {
  size_t at = utf8.size();
  while (at > 0) {
    const size_t begin = character_begin(utf8, at - 1);
    if (!is_space(code_point_at(utf8.substr(begin, at - begin)).value)) break;
    at = begin;
  }
  return at;
}

/// The number of bytes of white space at the start of `utf8`.
size_t leading_space(std::string_view utf8) {
  size_t at = 0;
  while (at < utf8.size()) {
    const CodePoint c = code_point_at(utf8.substr(at));
    if (!is_space(c.value)) break;
    at += c.bytes;
  }
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.text < b.text; });
  for (const AddedToken& token : tokens_) {
    starts_[static_cast<unsigned char>(token.text[0])] = 1;
    if (token.text.size() == 1)
      seconds_.fill(1);
    else
      seconds_[static_cast<unsigned char>(token.text[1])] = 1;
  }
  if (std::count(starts_.begin(), starts_.end(), 1) == 1) only_start_ = tokens_[0].text[0];
  few_starts_ = FewBytes::of(starts_);
  few_seconds_ = FewBytes::of(seconds_);
  if (!tokens_.empty()) pairs_.resize(256 * 256 / 64);
  for (const AddedToken& token : tokens_) {
    const size_t row = static_cast<unsigned char>(token.text[0]) * size_t{256};
    if (token.text.size() == 1)
      for (size_t second = 0; second < 256; ++second) set_bit(row + second, pairs_);
    else
      set_bit(row + static_cast<unsigned char>(token.text[1]), pairs_);
  }
}

void AddedTokens::add_to(IdentityHash& hash) const {
  hash.add(static_cast<int64_t>(tokens_.size()));
  for (const AddedToken& token : tokens_) {
    hash.add(token.text);
    hash.add(int64_t{token.id});
    hash.add(int64_t{token.takes_space_before} | int64_t{token.takes_space_after} << 1 |
             int64_t{token.only_alone} << 2);
  }
}

AddedTokens::FewBytes AddedTokens::FewBytes::of(const std::array<uint8_t, 256>& set) {
  FewBytes few{};
  size_t count = 0;
  for (size_t byte = 0; byte < set.size(); ++byte) {
    if (set[byte] == 0) continue;
    if (count == kMost) return {.bytes = {}, .all = true};
    std::fill(few.bytes.begin() + static_cast<std::ptrdiff_t>(count++), few.bytes.end(),
              static_cast<char>(byte));
  }
  return few;
}

/// A mask of the bytes of `text` that are among these.
Bytes16 AddedTokens::FewBytes::in(const Bytes16& text) const {
  return (text.is(bytes[0]) | text.is(bytes[1])) | (text.is(bytes[2]) | text.is(bytes[3]));
}

size_t AddedTokens::next_start(std::string_view utf8, size_t from) const {
  if (only_start_) return std::min(utf8.find(*only_start_, from), utf8.size());
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(utf8[at]); };
  // A blank begins a token of several blanks and is every sixth byte: the byte after it decides without a
  // branch of its own.
  size_t at = from;
  if (!few_starts_.all)
    for (; at + Bytes16::kBytes < utf8.size(); at += Bytes16::kBytes) {
      unsigned found = few_starts_.in(Bytes16::load(utf8.data() + at)).bits();
      if (found != 0 && !few_seconds_.all)
        found &= few_seconds_.in(Bytes16::load(utf8.data() + at + 1)).bits();
      if (found != 0) return at + static_cast<size_t>(std::countr_zero(found));
    }
  while (at + 1 < utf8.size() && (starts_[byte(at)] & seconds_[byte(at + 1)]) == 0) ++at;
  if (at + 1 == utf8.size() && starts_[byte(at)] == 0) ++at;
  return std::min(at, utf8.size());
}

std::optional<AddedTokens::Found> AddedTokens::find(std::string_view utf8, size_t from) const {
  if (tokens_.empty()) return std::nullopt;
  for (size_t at = next_start(utf8, from); at < utf8.size(); at = next_start(utf8, at + 1)) {
    if (const AddedToken* token = longest(utf8.substr(at))) return Found{at, at + token->text.size(), token};
  }
  return std::nullopt;
}

const AddedToken* AddedTokens::longest(std::string_view utf8) const {
  if (utf8.size() > 1) {
    const size_t pair =
        static_cast<unsigned char>(utf8[0]) * size_t{256} + static_cast<unsigned char>(utf8[1]);
    if ((pairs_[pair / 64] >> (pair % 64) & 1) == 0) return nullptr;
  }
  const AddedToken* found = nullptr;
  auto first = tokens_.begin(), last = tokens_.end();  // tokens that begin with the first `at` bytes of utf8
  for (size_t at = 0; first != last; ++at) {
    if (first->text.size() == at) {
      found = &*first;
      while (first != last && first->text.size() == at) ++first;
    }
    if (at == utf8.size()) break;
    const auto byte = [at](const AddedToken& t) { return static_cast<unsigned char>(t.text[at]); };
    const auto wanted = static_cast<unsigned char>(utf8[at]);
    first = std::partition_point(first, last, [&](const AddedToken& t) { return byte(t) < wanted; });
    last = std::partition_point(first, last, [&](const AddedToken& t) { return byte(t) == wanted; });
  }
  return found;
}

bool AddedTokens::alone(std::string_view utf8, const Found& found) {
  const auto is_word = [](std::string_view rest) { return char_traits(code_point_at(rest).value).is_word(); };
  if (found.begin > 0 && is_word(utf8.substr(character_begin(utf8, found.begin - 1)))) return false;
  return found.end == utf8.size() || !is_word(utf8.substr(found.end));
}

size_t AddedTokens::before(std::string_view utf8, const Found& found, size_t from, Spaces& spaces) {
  if (!found.token->takes_space_before || from >= found.begin) return std::max(from, found.begin);
  const size_t begin = from + trailing_space(utf8.substr(from, found.begin - from));
  spaces.read += found.begin - begin;
  return begin;
}

size_t AddedTokens::after(std::string_view utf8, const Found& found, Spaces& spaces) {
  if (!found.token->takes_space_after) return found.end;
  if (found.end < spaces.begin || found.end > spaces.end) {
    const size_t bytes = leading_space(utf8.substr(found.end));
    spaces = {.begin = found.end, .end = found.end + bytes, .read = spaces.read + bytes};
  }
  return spaces.end;
}

}  // namespace megalith
