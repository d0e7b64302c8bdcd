#include "libcore/text/bpe/byte_pair_encoder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/base/machine/huge_pages.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {

namespace {

/// Whether the ids of the joined tokens can serve as ranks, which saves a table: each merge must give a
/// greater id than the merge before it.
bool ids_ascend(std::span<const BytePairEncoder::Merge> merges) {
  const auto other = std::adjacent_find(merges.begin(), merges.end(),
                                        [](const auto& a, const auto& b) { return a.merged >= b.merged; });
  return other == merges.end();
}

using Bucket = MergeTables::Bucket;

void check(std::span<const TokenMerge> merges) {
  if (merges.size() >= MergeTables::kNoRank)
    fail(ErrorKind::kData, "the tokenizer has ", merges.size(), " merges; at most ", MergeTables::kNoRank - 1,
         " can be used");
  for (const TokenMerge& merge : merges)
    for (const int32_t id : {merge.left, merge.right, merge.merged})
      if (id < 0 || id >= MergeTables::kNobody)
        fail(ErrorKind::kData, "token id ", id, " is beyond what can be merged; ids go to ",
             MergeTables::kNobody - 1);
}

void add(const TokenMerge& merge, uint32_t rank, std::span<Bucket> buckets) {
  const uint64_t pair = MergeTables::pair_of(merge.left, merge.right);
  const int shift = 64 - std::countr_zero(buckets.size());
  for (size_t at = MergeTables::place(pair, shift);; at = (at + 1) & (buckets.size() - 1))
    for (uint64_t& slot : buckets[at].slots)
      if (slot == MergeTables::kFree || slot >> MergeTables::kRankBits == pair) {
        slot = pair << MergeTables::kRankBits | rank;
        return;
      }
}

/// Whether all ranks and ids in the slots are below these limits. The loop tests the highest bits of
/// differences, which are set if a difference is negative. So it needs no branch (which slots are free cannot
/// be predicted) and no 64-bit comparison (baseline x86-64 has no vector instruction for it).
bool slots_fit(std::span<const Bucket> buckets, uint64_t ranks, uint64_t ids) {
  constexpr uint64_t kLowRank = MergeTables::kNoRank - 1, kLowId = MergeTables::kNobody;
  uint64_t misfits = 0;
  for (const Bucket& bucket : buckets)
    for (const uint64_t slot : bucket.slots) {
      const uint64_t rank = slot & kLowRank, right = slot >> MergeTables::kRankBits & kLowId,
                     left = slot >> (MergeTables::kRankBits + MergeTables::kIdBits);
      const uint64_t beyond = (ranks - 1 - rank) | (ids - 1 - right) | (ids - 1 - left);
      const uint64_t above_free = slot - MergeTables::kFree;  // 0: the slot is free
      misfits |= beyond & (above_free | (0 - above_free));
    }
  return misfits >> 63 == 0;
}

/// Free buckets for this many pairs.
struct FreeBuckets {
  explicit FreeBuckets(size_t pairs)
      : memory(std::make_shared<HugePages>(std::bit_ceil(pairs / 2 + 2) * sizeof(Bucket))),
        span(memory->as<Bucket>()) {
    std::memset(span.data(), 0xFF, span.size_bytes());
  }
  SharedArray<Bucket> take() { return {span, std::move(memory)}; }

  std::shared_ptr<HugePages> memory;
  std::span<Bucket> span;
};

/// The id of the joined token by rank, or kTied where merges with this rank give different tokens.
std::vector<int32_t> merged_by_rank(std::span<const TokenMerge> merges, std::span<const uint32_t> ranks) {
  std::vector<int32_t> merged;
  std::vector<bool> seen;
  for (size_t i = 0; i < merges.size(); ++i) {
    const uint32_t rank = ranks[i];
    if (rank >= MergeTables::kNoRank) fail(ErrorKind::kInternal, "a merge has rank ", rank);
    if (rank >= merged.size()) {
      merged.resize(rank + 1);
      seen.resize(rank + 1);
    }
    merged[rank] = !seen[rank] || merged[rank] == merges[i].merged ? merges[i].merged : MergeTables::kTied;
    seen[rank] = true;
  }
  return merged;
}

/// All arrays except byte_ranks.
BytePairEncoder::Arrays arrays_with_ranks(std::span<const TokenMerge> merges,
                                          std::span<const uint32_t> ranks) {
  std::vector<int32_t> merged = merged_by_rank(merges, ranks);
  const auto is_tied = [&](size_t i) { return merged[ranks[i]] == MergeTables::kTied; };
  size_t tied = 0;
  FreeBuckets buckets(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    add(merges[i], ranks[i], buckets.span);
    tied += is_tied(i) ? 1 : 0;
  }
  SharedArray<Bucket> ties;
  if (tied > 0) {
    FreeBuckets free(tied);
    for (size_t i = 0; i < merges.size(); ++i)
      if (is_tied(i)) add(merges[i], static_cast<uint32_t>(merges[i].merged), free.span);
    ties = free.take();
  }
  return {.buckets = buckets.take(),
          .merged = SharedArray(std::move(merged)),
          .byte_ranks = {},
          .ties = std::move(ties)};
}

/// All arrays except byte_ranks.
BytePairEncoder::Arrays arrays_of(std::span<const TokenMerge> merges, MergeRanks ranks,
                                  std::span<const uint32_t> given) {
  check(merges);
  if (ranks == MergeRanks::kGiven) return arrays_with_ranks(merges, given);
  const bool rank_is_id = ranks == MergeRanks::kToken || ids_ascend(merges);
  FreeBuckets buckets(merges.size());
  std::vector<int32_t> merged;
  for (size_t i = 0; i < merges.size(); ++i) {
    add(merges[i], static_cast<uint32_t>(rank_is_id ? static_cast<size_t>(merges[i].merged) : i),
        buckets.span);
    if (!rank_is_id) merged.push_back(merges[i].merged);
  }
  return {.buckets = buckets.take(), .merged = SharedArray(std::move(merged)), .byte_ranks = {}, .ties = {}};
}

/// Whether the lookup of a pair that is in no bucket ends at this one: only a free slot ends it.
bool ends_lookups(const Bucket& bucket) {
  return bucket.slots.back() == MergeTables::kFree;
}

/// Whether these are buckets in which each lookup ends.
bool are_buckets(std::span<const Bucket> buckets) {
  return std::has_single_bit(buckets.size()) && buckets.size() > 1 &&
         std::any_of(buckets.begin(), buckets.end(), ends_lookups);
}

int shift_of(const SharedArray<Bucket>& buckets) {
  return 64 - std::countr_zero(buckets.size());
}

/// Whether each pair with a tied rank is among the ties, and all their ids are below `ids`.
bool ties_fit(const BytePairEncoder::Arrays& arrays, size_t ids) {
  if (arrays.ties.empty()) return true;
  if (!are_buckets(arrays.ties.span())) return false;
  for (const Bucket& bucket : arrays.buckets)
    for (const uint64_t slot : bucket.slots) {
      if (slot == MergeTables::kFree) continue;
      if (arrays.merged[slot & (MergeTables::kNoRank - 1)] != MergeTables::kTied) continue;
      const uint64_t pair = slot >> MergeTables::kRankBits;
      if (MergeTables::below(arrays.ties.data(), shift_of(arrays.ties), pair) >= ids) return false;
    }
  return true;
}

/// See byte_ids_.
std::array<int32_t, 256> ascii_ids(const CharacterIds& characters) {
  std::array<int32_t, 256> ids{};
  for (uint32_t c = 0; c < 128; ++c) ids[c] = std::max(characters.id_of(c), 0);
  return ids;
}

/// Replaces what is left of a piece after merging (CharacterIds::end).
void end_symbols(const CharacterIds& characters, MergedPiece& piece, std::vector<int32_t>& ids) {
  ids.assign(piece.ids.begin(), piece.ids.begin() + static_cast<std::ptrdiff_t>(piece.count));
  characters.end(ids);
  piece.count = ids.size();
  std::copy(ids.begin(), ids.end(), piece.ids.begin());
}

}  // namespace

struct BytePairEncoder::Lazy {
  std::once_flag once;
  std::optional<TokenReach> reach;
};

BytePairEncoder::~BytePairEncoder() = default;
BytePairEncoder::BytePairEncoder(BytePairEncoder&&) noexcept = default;

BytePairEncoder::BytePairEncoder(const std::array<int32_t, 256>& byte_ids, std::span<const Merge> merges,
                                 MergeRanks ranks, std::optional<CharacterIds> characters,
                                 std::span<const uint32_t> given)
    : BytePairEncoder(byte_ids, arrays_of(merges, ranks, given), std::move(characters)) {
  std::vector<uint32_t> byte_ranks(size_t{256} * 256);
  for (size_t pair = 0; pair < byte_ranks.size(); ++pair)
    byte_ranks[pair] = rank(byte_ids_[pair / 256], byte_ids_[pair % 256]);
  arrays_.byte_ranks = SharedArray(std::move(byte_ranks));
}

BytePairEncoder::BytePairEncoder(const std::array<int32_t, 256>& byte_ids, Arrays arrays,
                                 std::optional<CharacterIds> characters)
    : byte_ids_(characters ? ascii_ids(*characters) : byte_ids),
      characters_(std::move(characters)),
      arrays_(std::move(arrays)),
      shift_(shift_of(arrays_.buckets)),
      merging_(piece_merging(chosen_isa())),
      lazy_(std::make_unique<Lazy>()) {}

bool BytePairEncoder::fit(const Arrays& arrays, size_t ids) {
  const size_t ranks = arrays.merged.empty() ? ids : arrays.merged.size();
  const auto is_id = [&](int32_t id) {
    return static_cast<uint32_t>(id) < ids || (id == MergeTables::kTied && !arrays.ties.empty());
  };
  const auto is_rank = [&](uint32_t rank) { return rank < ranks || rank == kNoRank; };
  return are_buckets(arrays.buckets.span()) && arrays.byte_ranks.size() == size_t{256} * 256 &&
         std::all_of(arrays.merged.begin(), arrays.merged.end(), is_id) &&
         std::all_of(arrays.byte_ranks.begin(), arrays.byte_ranks.end(), is_rank) &&
         slots_fit(arrays.buckets.span(), ranks, ids) && ties_fit(arrays, ids);
}

MergeTables BytePairEncoder::tables() const {
  return {.buckets = arrays_.buckets.data(),
          .shift = shift_,
          .merged = arrays_.merged.empty() ? nullptr : arrays_.merged.data(),
          .byte_ranks = arrays_.byte_ranks.data(),
          .byte_ids = byte_ids_.data(),
          .ties = arrays_.ties.empty() ? nullptr : arrays_.ties.data(),
          .ties_shift = arrays_.ties.empty() ? 0 : shift_of(arrays_.ties)};
}

inline uint32_t BytePairEncoder::rank(int32_t left, int32_t right) const {
  return tables().rank(MergeTables::pair_of(left, right));
}

template <class Take>
void BytePairEncoder::each_slot(const Take& take) const {
  for (const Bucket& bucket : arrays_.buckets)
    for (const uint64_t slot : bucket.slots)
      if (slot != MergeTables::kFree) take(slot & (kNoRank - 1), slot >> MergeTables::kRankBits);
}

/// A counting sort by rank, since other threads may wait for the result. Few pairs share a rank.
std::vector<TokenMerge> BytePairEncoder::merges() const {
  std::vector<uint32_t> ends(1);  // where each rank's pairs end; at first, where they begin
  each_slot([&](uint64_t rank, uint64_t) {
    if (ends.size() < rank + 2) ends.resize(rank + 2);
    ++ends[rank + 1];
  });
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<uint64_t> pairs(ends.back());
  each_slot([&](uint64_t rank, uint64_t pair) { pairs[ends[rank]++] = pair; });
  std::vector<Merge> merges;
  merges.reserve(pairs.size());
  for (uint32_t rank = 0, begin = 0; begin < pairs.size(); begin = ends[rank++]) {
    const std::span equals(&pairs[begin], ends[rank] - begin);
    std::sort(equals.begin(), equals.end());
    for (const uint64_t pair : equals)
      merges.push_back({.left = static_cast<int32_t>(pair >> MergeTables::kIdBits),
                        .right = static_cast<int32_t>(pair & kNobody),
                        .merged = tables().joined(rank, pair)});
  }
  return merges;
}

void BytePairEncoder::add_to(IdentityHash& hash) const {
  const std::vector<Merge> all = merges();
  hash.add(static_cast<int64_t>(all.size()));
  for (const Merge& merge : all) {
    hash.add(int64_t{merge.left} << 32 | merge.right);
    hash.add(int64_t{merge.merged});
  }
}

const TokenReach& BytePairEncoder::reach() const {
  std::call_once(lazy_->once, [&] { lazy_->reach.emplace(merges()); });
  return *lazy_->reach;
}

void BytePairEncoder::start(std::string_view bytes, std::vector<int32_t>& ids) const {
  std::transform(bytes.begin(), bytes.end(), std::back_inserter(ids),
                 [&](char c) { return byte_ids_[static_cast<uint8_t>(c)]; });
}

void BytePairEncoder::encode(std::string_view bytes, std::vector<int32_t>& ids) const {
  ids.clear();
  if (bytes.size() > kWindow)
    return encode_long(
        bytes, [&](std::span<const int32_t> some) { ids.insert(ids.end(), some.begin(), some.end()); });
  if (characters_)
    characters_->start(bytes, ids);
  else
    start(bytes, ids);
  if (ids.size() <= kMostSymbols) {
    const auto* const symbols = characters_ ? nullptr : reinterpret_cast<const uint8_t*>(bytes.data());
    ids.resize(merging_.one(tables(), symbols, ids.data(), ids.size()));
  } else {
    std::vector<WindowMerge::Token> tokens;
    WindowMerge(tables()).run(ids, tokens);
    ids.resize(tokens.size());
    std::transform(tokens.begin(), tokens.end(), ids.begin(), [](const auto& token) { return token.id; });
  }
  if (characters_) characters_->end(ids);
}

void BytePairEncoder::encode_long(std::string_view bytes, const TakeIds& take, size_t window) const {
  LongPiece piece(*this, take, window);
  piece.add(bytes);
  piece.finish();
}

LongPiece::LongPiece(const BytePairEncoder& encoder, TakeIds take, size_t window)
    : encoder_(encoder),
      window_(window),
      merge_({.tables = encoder.tables(), .reach = encoder.reach(), .window = window},
             encoder.characters_ ? encoder.characters_->ending(std::move(take)) : std::move(take)) {}

void LongPiece::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view some = first_characters(bytes, window_);
    if (encoder_.characters_)
      encoder_.characters_->append(some, state_, merge_.ids());
    else
      encoder_.start(some, merge_.ids());
    merge_.advance();
    bytes.remove_prefix(some.size());
  }
}

void LongPiece::finish() {
  if (encoder_.characters_) encoder_.characters_->finish(state_, merge_.ids());
  merge_.finish();
}

void BytePairEncoder::encode_short(std::span<const PieceKey> keys, MergedPiece* out) const {
  if (!characters_) return merging_.bytes(tables(), keys, out);
  encode_characters(keys, out);
}

void BytePairEncoder::encode_characters(std::span<const PieceKey> keys, MergedPiece* out) const {
  std::vector<PieceKey> ascii;
  std::vector<size_t> places;  // of `ascii` in `keys`
  std::vector<MergedPiece*> others;
  std::vector<int32_t> ids;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (is_ascii(keys[i])) {
      ascii.push_back(keys[i]);
      places.push_back(i);
      continue;
    }
    characters_->start(keys[i].bytes(), ids);  // at most one for each byte
    out[i].count = ids.size();
    std::copy(ids.begin(), ids.end(), out[i].ids.begin());
    others.push_back(&out[i]);
  }
  std::vector<MergedPiece> merged(ascii.size());
  merging_.bytes(tables(), ascii, merged.data());
  for (size_t i = 0; i < ascii.size(); ++i) out[places[i]] = merged[i];
  merging_.symbols(tables(), others);
  if (!characters_->ends_with_tokens())
    for (MergedPiece* const piece : others) end_symbols(*characters_, *piece, ids);
}

/// Whether the piece can be merged like one of bytes: all its characters are ASCII and have ids, and all
/// symbols are tokens.
bool BytePairEncoder::is_ascii(const PieceKey& key) const {
  const std::string_view bytes = key.bytes();
  return characters_->ends_with_tokens() && std::all_of(bytes.begin(), bytes.end(), [&](char c) {
           return static_cast<uint8_t>(c) < 128 && characters_->id_of(static_cast<uint8_t>(c)) >= 0;
         });
}

}  // namespace megalith
