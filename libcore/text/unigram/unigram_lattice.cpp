#include "libcore/text/unigram/unigram_lattice.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <type_traits>

#include "libcore/text/idle_pool.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

constexpr size_t kFirstCheck = size_t{1} << 16;
constexpr size_t kLongestCharacter = 4;

}  // namespace

template <class Sum>
UnigramLattice<Sum>::UnigramLattice(const UnigramTables& tables, double unknown_score, TakePiece take)
    : trie_(tables.trie),
      tables_(tables),
      unknown_score_(static_cast<Sum>(unknown_score)),
      take_(std::move(take)),
      longest_(std::max(kLongestCharacter, tables.longest())),
      best_(longest_ + 1) {}

template <class Sum>
void UnigramLattice<Sum>::start(std::string_view text, Sum sum) {
  text_ = text;
  at_ = last_ = 0;
  lengths_.assign(text.size() + 1, 0);
  best_[0] = sum;
}

template <class Sum>
Sum UnigramLattice<Sum>::cut(std::string_view text, Sum sum) {
  start(text, sum);
  advance(text.size());
  pass_on(text.size());
  return best_[text.size()];
}

template <class Sum>
void UnigramLattice<Sum>::begin(Sum sum) {
  held_.clear();
  start(held_, sum);
  check_at_ = kFirstCheck;
}

template <class Sum>
void UnigramLattice<Sum>::add(std::string_view part) {
  held_ += part;
  text_ = held_;
  lengths_.resize(held_.size() + 1);
  advance(held_.size() >= longest_ ? held_.size() - longest_ + 1 : 0);
  if (held_.size() >= check_at_) pass_on_early();
}

template <class Sum>
Sum UnigramLattice<Sum>::finish() {
  text_ = held_;
  advance(text_.size());
  pass_on(text_.size());
  const Sum sum = best_[text_.size()];
  held_.clear();
  return sum;
}

template <class Sum>
void UnigramLattice<Sum>::trim() {
  constexpr size_t kKept = size_t{1} << 18;
  if (held_.capacity() > kKept) free_memory(held_);
  if (lengths_.capacity() > kKept) free_memory(lengths_);
}

/// Finds the tokens that begin before `stop`.
template <class Sum>
void UnigramLattice<Sum>::advance(size_t stop) {
  while (at_ < stop) {
    rebase();
    const size_t character = std::min(character_bytes(text_[at_]), text_.size() - at_);
    const Sum here = best_[at_];
    bool is_known = false;
    trie_.each(text_.substr(at_, longest_), [&](size_t bytes, int32_t id) {
      offer(at_, bytes, static_cast<Sum>(tables_.score(id)) + here);
      is_known = is_known || bytes == character;
    });
    if (!is_known) offer(at_, character, unknown_score_ + here);
    at_ += character;
  }
}

template <class Sum>
void UnigramLattice<Sum>::rebase() {
  if constexpr (std::is_same_v<Sum, float>) {
    const Sum here = best_[at_];
    if (!(std::abs(here) > kFarthestSum)) return;
    for (size_t i = at_ + 1; i <= last_; ++i)
      if (lengths_[i] != 0) best_[i] -= here;
    best_[at_] = 0;
  }
}

/// Keeps a token if it is better than what else ends at its end.
template <class Sum>
void UnigramLattice<Sum>::offer(size_t at, size_t bytes, Sum sum) {
  const size_t end = at + bytes;
  last_ = std::max(last_, end);
  if (lengths_[end] != 0 && !(sum > best_[end])) return;
  lengths_[end] = static_cast<uint16_t>(bytes);
  best_[end] = sum;
}

/// The last place through which all ways lead that end where a next token may begin. Nothing if that is the
/// beginning.
template <class Sum>
std::optional<size_t> UnigramLattice<Sum>::common_place() const {
  std::priority_queue<size_t> ends;
  for (size_t i = at_; i <= last_; ++i)
    if (i == at_ || lengths_[i] != 0) ends.push(i);
  while (true) {
    const size_t end = ends.top();
    while (!ends.empty() && ends.top() == end) ends.pop();
    if (end == 0) return std::nullopt;
    if (ends.empty()) return end;
    ends.push(end - lengths_[end]);
  }
}

/// Passes on the pieces of the best way up to `end`. First it turns the way around: afterwards lengths_ has,
/// for each place where a piece begins, the bytes of that piece.
template <class Sum>
void UnigramLattice<Sum>::pass_on(size_t end) {
  uint16_t length = lengths_[end];
  for (size_t at = end; at > 0;) {
    at -= length;
    std::swap(length, lengths_[at]);
  }
  for (size_t at = 0; at < end; at += lengths_[at]) take_(text_.substr(at, lengths_[at]));
}

template <class Sum>
void UnigramLattice<Sum>::pass_on_early() {
  if (const std::optional<size_t> end = common_place()) {
    pass_on(*end);
    held_.erase(0, *end);
    text_ = held_;
    lengths_.erase(lengths_.begin(), lengths_.begin() + static_cast<std::ptrdiff_t>(*end));
    at_ -= *end;
    last_ -= *end;
    best_.shift(*end);
  }
  check_at_ = std::max(kFirstCheck, 2 * held_.size());
}

template class UnigramLattice<float>;
template class UnigramLattice<double>;

}  // namespace megalith
