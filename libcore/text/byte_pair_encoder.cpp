#include "libcore/text/byte_pair_encoder.h"

#include <algorithm>
#include <queue>

namespace megalith {
namespace {

// Up to here the quadratic loop over an array on the stack is faster than the queue.
constexpr size_t kShort = 64;

}  // namespace

BytePairEncoder::BytePairEncoder(const std::array<int32_t, 256>& byte_ids, std::span<const Merge> merges,
                                 MergeRanks ranks, std::optional<CharacterIds> characters)
    : byte_ids_(byte_ids), characters_(std::move(characters)), targets_(merges.size()) {
  uint32_t rank = 0;
  for (const Merge& merge : merges) {
    targets_[id_pair(merge.left, merge.right)] = {
        ranks == MergeRanks::kToken ? static_cast<uint32_t>(merge.merged) : rank, merge.merged};
    ++rank;
  }
}

BytePairEncoder::Target BytePairEncoder::target(int32_t left, int32_t right) const {
  const Target* found = targets_.find(id_pair(left, right));
  return found ? *found : Target{};
}

void BytePairEncoder::add_to(IdentityHash& hash) const {
  std::vector<std::array<uint32_t, 4>> merges;
  targets_.for_each([&](IdPair pair, const Target& target) {
    merges.push_back({target.rank, static_cast<uint32_t>(left_of(pair)),
                      static_cast<uint32_t>(right_of(pair)), static_cast<uint32_t>(target.merged)});
  });
  std::sort(merges.begin(), merges.end());
  hash.add(static_cast<int64_t>(merges.size()));
  for (const auto& [rank, left, right, merged] : merges) {
    hash.add(static_cast<int64_t>(id_pair(static_cast<int32_t>(left), static_cast<int32_t>(right))));
    hash.add(int64_t{merged});
  }
}

void BytePairEncoder::encode(std::string_view bytes, std::vector<int32_t>& ids) const {
  if (characters_) {
    characters_->start(bytes, ids);
  } else {
    ids.resize(bytes.size());
    std::transform(bytes.begin(), bytes.end(), ids.begin(),
                   [&](char c) { return byte_ids_[static_cast<uint8_t>(c)]; });
  }
  if (ids.size() <= kShort)
    merge_short(ids);
  else
    merge_long(ids);
}

void BytePairEncoder::merge_short(std::vector<int32_t>& ids) const {
  std::array<Target, kShort> targets;  // targets[i]: what ids[i] and ids[i + 1] become
  size_t n = ids.size();
  for (size_t i = 0; i + 1 < n; ++i) targets[i] = target(ids[i], ids[i + 1]);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i)
      if (targets[i].rank < targets[best].rank) best = i;
    if (targets[best].rank == kNoRank) break;
    ids[best] = targets[best].merged;
    for (size_t i = best + 1; i + 1 < n; ++i) {
      ids[i] = ids[i + 1];
      targets[i] = targets[i + 1];
    }
    --n;
    if (best > 0) targets[best - 1] = target(ids[best - 1], ids[best]);
    if (best + 1 < n) targets[best] = target(ids[best], ids[best + 1]);
  }
  ids.resize(n);
}

void BytePairEncoder::merge_long(std::vector<int32_t>& ids) const {
  struct Symbol {
    int32_t id, previous, next;  // id -1: joined to the one before
  };
  struct Candidate {
    uint32_t rank;
    int32_t at, left, right, merged;
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  const auto n = static_cast<int32_t>(ids.size());
  std::vector<Symbol> symbols(ids.size());
  for (int32_t i = 0; i < n; ++i)
    symbols[static_cast<size_t>(i)] = {ids[static_cast<size_t>(i)], i - 1, i + 1 < n ? i + 1 : -1};
  const auto symbol = [&](int32_t i) -> Symbol& { return symbols[static_cast<size_t>(i)]; };

  std::priority_queue<Candidate> queue;
  const auto consider = [&](int32_t at) {
    if (at < 0 || symbol(at).next < 0) return;
    const int32_t left = symbol(at).id;
    const int32_t right = symbol(symbol(at).next).id;
    const Target found = target(left, right);
    if (found.rank != kNoRank) queue.push({found.rank, at, left, right, found.merged});
  };
  for (int32_t i = 0; i < n; ++i) consider(i);

  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& here = symbol(top.at);
    // Outdated when either side was joined to something else since.
    if (here.id != top.left || here.next < 0 || symbol(here.next).id != top.right) continue;
    Symbol& gone = symbol(here.next);
    here = {top.merged, here.previous, gone.next};
    gone.id = -1;
    if (here.next >= 0) symbol(here.next).previous = top.at;
    consider(here.previous);
    consider(top.at);
  }
  ids.clear();
  for (const Symbol& s : symbols)
    if (s.id >= 0) ids.push_back(s.id);
}

}  // namespace megalith
