#include "libcore/text/bpe/cache/cached_encoder.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/text/idle_pool.h"

namespace megalith {

void PieceRules::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  const auto found = whole.find(piece);
  if (found == whole.end())
    encoder.encode(piece, ids);
  else
    ids.assign(1, found->second);
}

CachedEncoder::CachedEncoder(const PieceRules& rules, TokenCache& memory)
    : rules_(rules),
      cutter_(rules.borders, rules.whole),
      memory_(memory),
      reader_(memory.epochs.join()),
      cache_writer_(memory) {}

CachedEncoder::~CachedEncoder() {
  memory_.epochs.leave(reader_);
}

void CachedEncoder::trim() {
  constexpr size_t kKept = size_t{1} << 20;
  if (one_.capacity() > kKept) free_memory(one_);
  cutter_.trim();
  cache_writer_.fill();
}

void CachedEncoder::encode(std::string_view text, std::span<const uint32_t> ends, IdBuffer& ids,
                           std::span<const Mark> marks) {
  const Rest rest{
      .text = text, .ends = rules_.cut_in_parts ? cutter_.cut({text, ends}) : ends, .marks = marks};
  const bool narrow = ids.width() == sizeof(uint16_t);
  if (rules_.wide && narrow) fail(ErrorKind::kInternal, "ids beyond 65535 do not fit two bytes");
  if (rules_.wide)
    encode_all<int32_t, int32_t>(rest, ids);
  else if (narrow)
    encode_all<uint16_t, uint16_t>(rest, ids);
  else
    encode_all<uint16_t, int32_t>(rest, ids);
}

template <class Stored, class Id>
void CachedEncoder::encode_all(Rest rest, IdBuffer& ids) {
  constexpr size_t kWritten = sizeof(PackedIds<Stored>) / sizeof(Stored);
  // At most one id for each byte and mark.
  Id* out = ids.extend<Id>(rest.ends.back() + rest.marks.size() + kWritten);
  while (rest.next < rest.ends.size()) {
    {
      const Epochs::ReadGuard guard(reader_);
      out = encode_batch<Stored>(rest, out);
    }
    cache_writer_.keep(std::span(unknown_).first(unknown_count_), merged_.data());
  }
  ids.finish(out);
}

template <class Stored, class Id>
Id* CachedEncoder::encode_batch(Rest& rest, Id* out) {
  count_ = slow_count_ = unknown_count_ = 0;
  while (count_ + kGroup <= kBatch && rest.next < rest.ends.size()) take_group(rest);
  merge_unknown();
  Written written;
  size_t stop = 0;
  for (; !rest.marks.empty() && rest.marks[0].at <= rest.begin; rest.marks = rest.marks.subspan(1)) {
    while (begins_[stop] < rest.marks[0].at) ++stop;
    out = write_pieces<Stored>(rest.text, stop, written, out);
    *out++ = static_cast<Id>(rest.marks[0].id);
  }
  return write_pieces<Stored>(rest.text, count_, written, out);
}

/// Writes the ids of the pieces of the batch up to number `stop`.
template <class Stored, class Id>
Id* CachedEncoder::write_pieces(std::string_view text, size_t stop, Written& written, Id* out) {
  auto [i, slow] = written;
  for (;; ++slow, ++i) {
    const size_t end = slow < slow_count_ ? std::min<size_t>(slow_[slow], stop) : stop;
    for (; i < end; ++i) {
      const PackedIds<Stored> packed = entries_[i]->ids<Stored>();
      packed.write(out);
      out += packed.count();
    }
    if (i == stop) break;
    for (const int32_t id : ids_of_slow(text, slow)) *out++ = static_cast<Id>(id);
  }
  written = {i, slow};
  return out;
}

/// Takes the next pieces into the batch. First it finds all keys, so that the table's cache lines are already
/// on their way when they are needed; then it finds the entries.
void CachedEncoder::take_group(Rest& rest) {
  std::array<const PieceTable::Line*, kGroup> lines;
  const size_t first = count_, slow_before = slow_count_;
  const std::string_view text = rest.text;
  size_t next = rest.next, n = 0;
  uint32_t begin = rest.begin;
  while (n + kTogether <= kGroup && next < rest.ends.size()) {
    if (lookup_.take_keys) {
      const auto ends = rest.ends.subspan(next, std::min(kGroup - n, rest.ends.size() - next));
      const size_t taken = lookup_.take_keys(memory_.table, {text, begin, ends},
                                             {&begins_[first + n], &keys_[first + n], &lines[n]});
      begin = taken > 0 ? ends[taken - 1] : begin;
      next += taken;
      n += taken;
      if (taken == ends.size()) break;
    }
    // Where the vector kernel stops, one piece is taken here, since there is usually just one that it cannot
    // take. Without a kernel, the whole group is taken here.
    for (const size_t stop = lookup_.take_keys ? n + 1 : kGroup; n < stop && next < rest.ends.size(); ++n) {
      const uint32_t end = rest.ends[next++];
      const PieceKey key = begin + sizeof key <= text.size() ? PieceKey::of(text.data() + begin, end - begin)
                                                             : PieceKey::of(text.substr(begin, end - begin));
      begins_[first + n] = begin;
      keys_[first + n] = key;
      lines[n] = &memory_.table.line(key);
      __builtin_prefetch(lines[n]);
      begin = end;
    }
  }
  rest.next = next;
  rest.begin = begins_[first + n] = begin;
  count_ = first + n;
  slow_count_ += lookup_.find_entries(
      {.keys = &keys_[first], .lines = lines.data(), .count = n},
      {.entries = &entries_[first], .unknown = &slow_[slow_before], .first = static_cast<uint16_t>(first)});
  for (size_t slow = slow_before; slow < slow_count_; ++slow) note_unknown(slow);
}

/// Adds a short slow piece whose ids are not known to the list of pieces to be merged. A word that recurs
/// soon is listed only once.
void CachedEncoder::note_unknown(size_t slow) {
  const size_t i = slow_[slow];
  const PieceKey& key = keys_[i];
  unknown_of_[slow] = kKnown;
  if (key.size() > PieceKey::kLongest) return;
  if (const auto far = memory_.table.find_far(key)) {
    far_[slow] = *far;
    return;
  }
  const size_t from = unknown_count_ > kSideBySide ? unknown_count_ - kSideBySide : 0;
  size_t at = from;
  while (at < unknown_count_ && unknown_[at] != key) ++at;
  unknown_of_[slow] = static_cast<uint16_t>(at);
  if (at == unknown_count_) unknown_[unknown_count_++] = key;
}

void CachedEncoder::merge_unknown() {
  rules_.encoder.encode_short(std::span(unknown_).first(unknown_count_), merged_.data());
  if (rules_.whole.empty()) return;
  for (size_t i = 0; i < unknown_count_; ++i) {
    const auto found = rules_.whole.find(unknown_[i].bytes());
    if (found != rules_.whole.end()) merged_[i] = {.count = 1, .ids = {found->second}};
  }
}

/// The ids of a slow piece. Valid until the next call.
std::span<const int32_t> CachedEncoder::ids_of_slow(std::string_view text, size_t slow) {
  const size_t i = slow_[slow];
  const PieceKey& key = keys_[i];
  const std::string_view piece = text.substr(begins_[i], begins_[i + 1] - begins_[i]);
  if (unknown_of_[slow] != kKnown) {
    const MergedPiece& merged = merged_[unknown_of_[slow]];
    return std::span(merged.ids).first(merged.count);
  }
  if (key.size() > PieceKey::kLongest) {
    if (const auto known = memory_.longer.find(piece); !known.empty()) return known;
    rules_.encode(piece, one_);
    memory_.longer.put(piece, one_);
    return one_;
  }
  if (const auto known = memory_.longer.get(far_[slow]); !known.empty()) return known;
  rules_.encode(piece, one_);
  if (const auto ref = memory_.longer.append(one_); ref.at != 0) memory_.table.move_far(key, ref);
  return one_;
}

}  // namespace megalith
