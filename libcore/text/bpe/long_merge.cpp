#include "libcore/text/bpe/long_merge.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "libcore/base/error.h"

namespace megalith {
namespace {

constexpr uint32_t kLongestToken = 1 << 12;
/// The factor by which a window may grow where looking ahead is expensive.
constexpr size_t kWidening = 16;

/// The smallest of a fixed number of steps, in four chains of four lanes: GCC does not vectorize a plain
/// loop.
template <size_t kCount>
int32_t min_of(const int32_t* steps) {
  using Lanes = int32_t __attribute__((vector_size(16)));
  constexpr size_t kChains = 4, kLanes = sizeof(Lanes) / sizeof *steps;
  std::array<Lanes, kChains> lowest;
  std::memcpy(lowest.data(), steps, sizeof lowest);
  for (size_t i = kChains * kLanes; i < kCount; i += kChains * kLanes) {
    std::array<Lanes, kChains> more;
    std::memcpy(more.data(), steps + i, sizeof more);
    for (size_t k = 0; k < kChains; ++k) lowest[k] = more[k] < lowest[k] ? more[k] : lowest[k];
  }
  lowest[0] = lowest[1] < lowest[0] ? lowest[1] : lowest[0];
  lowest[2] = lowest[3] < lowest[2] ? lowest[3] : lowest[2];
  lowest[0] = lowest[2] < lowest[0] ? lowest[2] : lowest[0];
  return std::min(std::min(lowest[0][0], lowest[0][1]), std::min(lowest[0][2], lowest[0][3]));
}

}  // namespace

void WindowMerge::run(std::span<const int32_t> ids, std::vector<Token>& tokens) {
  tokens.clear();
  if (ids.empty()) return;
  if (ids.size() > kMaxIds)
    fail(ErrorKind::kData, "a text holds ", ids.size(),
         " characters without a place where tokens must be split; at most ", kMaxIds, " can be merged");
  start(ids);
  while (true) {
    const int32_t best = min_of<kFan>(levels_[height_ - 1].steps.data());
    const uint32_t rank = static_cast<uint32_t>(best) >> kFanBits;
    if (rank >= MergeTables::kNoRank) break;
    size_t at = static_cast<size_t>(best) % kFan;
    for (size_t level = height_ - 1; level > 0; --level) at = at * kFan + levels_[level].min_places[at];
    join(static_cast<uint32_t>(at), rank);
  }
  const auto n = static_cast<uint32_t>(ids.size());
  for (uint32_t at = 0; at != n; at = symbols_[at].next)
    tokens.push_back({symbols_[at].id, symbols_[at].next});
}

void WindowMerge::start(std::span<const int32_t> ids) {
  const auto n = static_cast<uint32_t>(ids.size());
  symbols_.resize(size_t{n} + 1);
  for (uint32_t i = 0; i < n; ++i) symbols_[i] = {ids[i], i - 1, i + 1};
  symbols_[0].previous = n;
  symbols_[n] = {MergeTables::kNobody, n - 1, 0};
  resize_levels();
  for (uint32_t i = 0; i < n; ++i) set_rank(i);
  for (size_t level = 0; level + 1 < height_; ++level)
    for (size_t group = 0; group < levels_[level].steps.size() / kFan; ++group) renew(level, group);
}

/// Each level is padded with steps that stand for no pair, so that min_of() sees whole groups.
void WindowMerge::resize_levels() {
  size_t count = symbols_.size();  // one step more than there are pairs
  for (height_ = 0; height_ == 0 || count > 1; ++height_) {
    const size_t groups = (count + kFan - 1) / kFan;
    if (height_ == levels_.size()) levels_.emplace_back();
    Level& level = levels_[height_];
    level.steps.assign(groups * kFan, step(MergeTables::kNoRank, 0));
    level.min_places.resize(height_ == 0 ? 0 : groups * kFan);
    count = groups;
  }
}

void WindowMerge::join(uint32_t at, uint32_t rank) {
  Symbol& here = symbols_[at];
  const uint32_t gone = here.next;
  here.id = tables_.joined(rank, MergeTables::pair_of(here.id, symbols_[gone].id));
  here.next = symbols_[gone].next;
  symbols_[here.next].previous = at;
  levels_[0].steps[gone] = step(MergeTables::kNoRank, gone);
  set_rank(here.previous);
  set_rank(at);
  renew_above(at);
  if (gone / kFan != at / kFan) renew_above(gone);
  if (here.previous / kFan != at / kFan) renew_above(here.previous);
}

void WindowMerge::set_rank(uint32_t at) {
  const Symbol& here = symbols_[at];
  const uint32_t rank = tables_.rank(MergeTables::pair_of(here.id, symbols_[here.next].id));
  levels_[0].steps[at] = step(rank, at);
}

/// Recomputes a step of the level above: the smallest of the group of kFan steps that it stands for.
void WindowMerge::renew(size_t level, size_t group) {
  const int32_t min_step = min_of<kFan>(&levels_[level].steps[group * kFan]);
  Level& above = levels_[level + 1];
  above.steps[group] = step(static_cast<uint32_t>(min_step) >> kFanBits, group);
  above.min_places[group] = static_cast<uint8_t>(static_cast<size_t>(min_step) % kFan);
}

void WindowMerge::renew_above(size_t place) {
  for (size_t level = 0; level + 1 < height_; ++level) renew(level, place /= kFan);
}

// The length of a token is that of the longest way to form it. The reach of an id is the length of the
// longest token that can begin with it. Both only grow from round to round, so the rounds end.
TokenReach::TokenReach(std::span<const TokenMerge> merges) {
  int32_t max_id = 0;
  for (const TokenMerge& merge : merges) max_id = std::max({max_id, merge.left, merge.right, merge.merged});
  std::vector<uint32_t> lengths(static_cast<size_t>(max_id) + 1, 1);
  const auto length = [&](int32_t id) -> uint32_t& { return lengths[static_cast<size_t>(id)]; };
  for (bool changed = true; changed && bounded_;) {
    changed = false;
    for (const TokenMerge& merge : merges) {
      const uint32_t sum = length(merge.left) + length(merge.right);
      if (sum <= length(merge.merged)) continue;
      length(merge.merged) = sum;
      longest_ = std::max(longest_, sum);
      changed = true;
      if (sum > kLongestToken) bounded_ = false;
    }
  }
  reach_ = std::move(lengths);
  for (bool changed = true; changed && bounded_;) {
    changed = false;
    for (size_t i = merges.size(); i-- > 0;) {
      const uint32_t further = of(merges[i].merged);
      uint32_t& reach = reach_[static_cast<size_t>(merges[i].left)];
      if (further <= reach) continue;
      reach = further;
      changed = true;
    }
  }
}

LongMerge::LongMerge(const Rules& rules, TakeIds take)
    : merge_(rules.tables),
      reach_(rules.reach),
      max_window_(kWidening * rules.window),
      window_(rules.window),
      needed_(window_),
      take_(std::move(take)) {}

void LongMerge::advance() {
  if (ids_.size() < needed_ || !reach_.bounded()) return;
  merge_.run(ids_, tokens_);
  checked_ = 0;
  const uint32_t settled = final_tokens();
  if (checked_ > window_ / 2) window_ = std::min(2 * window_, max_window_);
  needed_ = settled > 0 ? window_ : 2 * ids_.size();
  hand_over(settled);
}

void LongMerge::finish() {
  merge_.run(ids_, tokens_);
  hand_over(static_cast<uint32_t>(tokens_.size()));
}

/// The number of tokens, from the first of tokens_ on, that stay as they are whatever follows, so that they
/// can be handed over.
uint32_t LongMerge::final_tokens() {
  const auto end = static_cast<uint32_t>(ids_.size());
  auto settled = static_cast<uint32_t>(tokens_.size());
  auto before = settled;  // number of tokens that end at `place` or before
  for (uint32_t place = end - 1; settled > 0 && end - place < reach_.longest(); --place) {
    while (before > 0 && tokens_[before - 1].end > place) --before;
    if (reach_.of(ids_[place]) > end - place) settled = std::min(settled, in_common(before, place));
    if (place == 0) break;
  }
  return settled;
}

/// `tokens` is the number of tokens that end at `end` or before. Returns how many of these, from the first
/// on, remain tokens if the ids up to `end` are merged alone.
uint32_t LongMerge::in_common(uint32_t tokens, uint32_t end) {
  if (begin_of(tokens) == end) return tokens;
  for (uint32_t back = 1; tokens > 0; back *= 4) {
    const uint32_t first = tokens - std::min(tokens, back), from = begin_of(first);
    merge_.run(std::span(ids_).subspan(from, end - from), part_);
    checked_ += end - from;
    // Looks for the last token that tokens_ and part_ share.
    size_t i = tokens, j = part_.size();
    while (i > first && j > 0) {
      const uint32_t ours = tokens_[i - 1].end, theirs = from + part_[j - 1].end;
      if (ours == theirs && begin_of(static_cast<uint32_t>(i) - 1) == from + (j > 1 ? part_[j - 2].end : 0))
        return static_cast<uint32_t>(i);
      i -= ours >= theirs;
      j -= theirs >= ours;
    }
    if (first == 0) break;
  }
  return 0;
}

void LongMerge::hand_over(uint32_t tokens) {
  if (tokens == 0) return;
  out_.clear();
  for (const Token& token : std::span(tokens_).first(tokens)) out_.push_back(token.id);
  take_(out_);
  ids_.erase(ids_.begin(), ids_.begin() + begin_of(tokens));
}

}  // namespace megalith
