#include "libcore/text/wordpiece/wordpiece_worker.h"

#include <algorithm>

#include "libcore/text/idle_pool.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

constexpr size_t kManyIds = size_t{1} << 14;   // ids handed over at a time
constexpr size_t kLongWord = size_t{1} << 16;  // bytes whose memory is kept

}  // namespace

WordPieceWorker::WordPieceWorker(const WordPieceTables& tables, const WordPieceRules& rules)
    : rules_(rules),
      classes_(rules.cuts),
      firsts_(tables.firsts),
      others_(tables.others),
      cuts_(size_t{1} << kBits) {}

void WordPieceWorker::encode(std::string_view text, const TakeIds& take) {
  begin(take);
  cut_words(text, true);
  hand_over();
}

void WordPieceWorker::begin(const TakeIds& take) {
  take_ = &take;
  ids_.clear();
  held_.clear();
}

void WordPieceWorker::add(std::string_view part) {
  if (!held_.empty()) {
    const size_t end = end_of_held(part);
    hold(part.substr(0, end));
    if (end == part.size()) return;
    take_word(held_, held_.size());
    held_.clear();
    part.remove_prefix(end);
  }
  const std::string_view last = part.substr(cut_words(part, false));
  if (last.empty()) return;
  held_class_ = classes_.of(code_point_at(last).value);
  hold(last);
}

void WordPieceWorker::finish() {
  if (!held_.empty()) take_word(held_, held_.size());
  held_.clear();
  hand_over();
}

void WordPieceWorker::trim() {
  if (held_.capacity() > kLongWord) free_memory(held_);
}

/// Cuts the words of a text, and returns where the last of them ends. Without `to_end` more text follows, so
/// a word at the end is left for later: it may be longer.
size_t WordPieceWorker::cut_words(std::string_view text, bool to_end) {
  size_t begin = 0;  // of the word before `at`, if there is one
  WordClasses::Class word = 0;
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const CodePoint c = byte < 0x80 ? CodePoint{byte, 1} : code_point_at(text.substr(at));
    const WordClasses::Class next = classes_.of(c.value);
    if (begin < at && !WordClasses::joined(word, next)) {
      take_word(text.substr(begin), at - begin);
      begin = at;
    }
    at += c.bytes;
    if (WordClasses::is_space(next)) begin = at;
    word = next;
  }
  if (!to_end || begin == text.size()) return begin;
  take_word(text.substr(begin), text.size() - begin);
  return text.size();
}

/// Where the held word ends in the text after it.
size_t WordPieceWorker::end_of_held(std::string_view part) const {
  size_t at = 0;
  while (at < part.size()) {
    const CodePoint c = code_point_at(part.substr(at));
    if (!WordClasses::joined(held_class_, classes_.of(c.value))) break;
    at += c.bytes;
  }
  return at;
}

/// Adds to the held word, unless it is too long already.
void WordPieceWorker::hold(std::string_view text) {
  constexpr size_t kLongestCharacter = 4;
  if (held_.size() / kLongestCharacter <= rules_.longest_word) held_ += text;
}

/// Encodes the word that is the first `bytes` bytes of `text`.
void WordPieceWorker::take_word(std::string_view text, size_t bytes) {
  if (ids_.size() >= kManyIds) hand_over();
  const std::string_view word = text.substr(0, bytes);
  if (bytes > PartKey::kLongest) return cut_word(word);
  const PartKey key = PartKey::of(text.data(), bytes, text.data() + text.size());
  const Cut& cut = cuts_[key.hash() >> (64 - kBits)];
  if (cut.key == key) {
    ids_.insert(ids_.end(), cut.ids.begin(), cut.ids.begin() + cut.count);
    return;
  }
  const size_t first = ids_.size();
  cut_word(word);
  remember(key, first);
}

void WordPieceWorker::remember(const PartKey& key, size_t first_id) {
  const size_t count = ids_.size() - first_id;
  if (count > Cut::kMostIds) return;
  Cut& cut = cuts_[key.hash() >> (64 - kBits)];
  cut.key = key;
  cut.count = static_cast<uint32_t>(count);
  std::copy_n(ids_.begin() + static_cast<std::ptrdiff_t>(first_id), count, cut.ids.begin());
}

void WordPieceWorker::cut_word(std::string_view word) {
  const size_t first = ids_.size();
  const PrefixTrie* trie = &firsts_;
  bool is_known = !is_too_long(word);
  while (is_known && !word.empty()) {
    size_t longest = 0;
    int32_t found = 0;
    trie->each(word, [&](size_t bytes, int32_t id) {
      longest = bytes;
      found = id;
    });
    is_known = longest > 0;
    ids_.push_back(found);
    word.remove_prefix(longest);
    trie = &others_;
  }
  if (is_known) return;
  ids_.resize(first);
  ids_.push_back(rules_.unknown);
}

bool WordPieceWorker::is_too_long(std::string_view word) const {
  if (word.size() <= rules_.longest_word) return false;
  const auto characters = std::count_if(word.begin(), word.end(), [](char c) { return (c & 0xC0) != 0x80; });
  return static_cast<uint64_t>(characters) > rules_.longest_word;
}

void WordPieceWorker::hand_over() {
  if (!ids_.empty()) (*take_)(ids_);
  ids_.clear();
}

std::unique_ptr<TextWorker> make_text_worker(const WordPieceTables& tables, const WordPieceRules& rules) {
  return std::make_unique<WordPieceWorker>(tables, rules);
}

}  // namespace megalith
