#include "libcore/text/formats/byte_level_tokenizer.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/text/bpe/cache/piece_cache.h"
#include "libcore/text/bpe/cache/pretoken_batch.h"
#include "libcore/text/formats/pretoken_stream.h"
#include "libcore/text/identity_hash.h"
#include "libcore/text/unicode/python_text.h"

namespace megalith {
namespace {

constexpr size_t kPieceIds = size_t{1} << 16;  // ids handed over at a time
constexpr size_t kEnds = 2048;                 // pretokens found at a time
/// About how many bytes are encoded at once; a longer pretoken is a giant.
constexpr size_t kLongPretoken = size_t{1} << 16;

constexpr size_t kSeedsAtOnce = 1024;
/// Tokens that may be seeds, the first ones: as a rule a text has more of them than of those that were merged
/// later. Merging all 262,144 of Gemma would take a tenth of its first run.
constexpr size_t kMostSeeds = (size_t{1} << 17) - 1;

}  // namespace

struct ByteLevelTokenizer::Scratch {
  Scratch(const PieceRules& rules, TokenCache& memory) : encoder(rules, memory) {}
  CachedEncoder encoder;
  std::array<uint32_t, kEnds> ends;
  IdBuffer ids{sizeof(int32_t)};

  /// Frees memory that an unusually long text took.
  void trim() {
    ids.clear();
    encoder.trim();
  }
};

/// Lends a Scratch to one call.
class ByteLevelTokenizer::Lease {
 public:
  explicit Lease(const ByteLevelTokenizer& owner)
      : scratch_(owner.scratches_.borrow([&] {
          auto made = std::make_unique<Scratch>(owner.rules_, *owner.memory_);
          owner.help_to_seed();
          return made;
        })) {}
  ~Lease() { scratch_->trim(); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Scratch& operator*() { return *scratch_; }
  Scratch* operator->() { return scratch_.get(); }

 private:
  Scratches::Loan scratch_;
};

namespace {

BytePairEncoder encoder_of(ByteLevelModel& model) {
  if (model.tables) return {model.byte_ids, std::move(model.tables->merges), model.characters};
  return {model.byte_ids, model.merges, model.ranks, model.characters, model.given_ranks};
}

MergeBorders borders_of(ByteLevelModel& model, const TokenTexts& tokens) {
  if (model.tables) return MergeBorders(std::move(model.tables->borders));
  // A vocabulary of characters is not cut at these borders.
  if (model.characters) return {tokens, {}};
  return {tokens, model.merges};
}

FindPretokens finder_of(ByteLevelModel& model) {
  if (!model.borders) return std::move(model.find_pretokens);
  return [borders = model.borders](std::string_view utf8, std::span<uint32_t> ends) {
    return borders->find(utf8, ends);
  };
}

}  // namespace

ByteLevelTokenizer::ByteLevelTokenizer(ByteLevelModel model)
    : name_(std::move(model.name)),
      tokens_(model.tables ? std::move(model.tables->tokens) : TokenTexts(model.tokens)),
      rules_{.cut_in_parts = !model.characters && !model.splits_characters,
             .wide = tokens_.size() > size_t{1} << 16,
             .encoder = encoder_of(model),
             .borders = borders_of(model, tokens_),
             .whole = {}},
      find_pretokens_(finder_of(model)),
      cutter_(std::move(model.cutter)),
      look_ahead_(model.look_ahead),
      dropped_(std::move(model.dropped)),
      mark_(std::move(model.mark)),
      raw_added_(std::move(model.raw_added)),
      normalized_added_(std::move(model.normalized_added)),
      eod_(model.eod),
      rule_names_(std::move(model.rules)),
      hash_(model.tables ? std::move(model.tables->hash) : "") {
  // Without a normalizer both groups of added tokens are looked for in the same text, and a single group
  // needs only one search.
  if (raw_added_.empty()) std::swap(raw_added_, normalized_added_);
  if (model.ignore_merges) rule_names_ += "; whole tokens first";
  if (model.tables)
    take_whole(model.tables->unmerged);
  else
    take_whole(model.ignore_merges ? find_unmerged(model.literal) : model.whole);
  seeds_ = model.tables ? std::move(model.tables->seeds) : SharedArray(find_seeds());
  ByteLevelTokenizer::expect(kUnknownSize);
}

void ByteLevelTokenizer::take_whole(const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) rules_.whole.emplace(tokens_[static_cast<size_t>(id)], id);
}

void ByteLevelTokenizer::expect(uint64_t bytes) {
  if (seeded_ != 0) return;
  memory_.emplace(TokenCache::Size::for_text(bytes, seeds_.size()), rules_.wide);
  to_seed_ = TokenCache::Size::pays(bytes, seeds_.size()) ? seeds_.size() : 0;
}

ByteLevelTables ByteLevelTokenizer::tables() const {
  return {.tokens = tokens_,
          .merges = rules_.encoder.arrays(),
          .borders = rules_.borders.arrays(),
          .seeds = seeds_,
          .unmerged = unmerged(),
          .hash = hash()};
}

/// Calls take(id, ids) with the ids that merging gives for each of the first `count` tokens. Short ones are
/// merged side by side.
template <class Take>
void ByteLevelTokenizer::merge_tokens(size_t count, const Take& take) const {
  std::vector<PieceKey> keys;
  std::vector<size_t> ids_of_keys;
  std::vector<MergedPiece> merged(kSeedsAtOnce);
  const auto merge_short = [&] {
    rules_.encoder.encode_short(keys, merged.data());
    for (size_t i = 0; i < keys.size(); ++i)
      take(ids_of_keys[i], std::span<const int32_t>(merged[i].ids).first(merged[i].count));
    keys.clear();
    ids_of_keys.clear();
  };
  std::vector<int32_t> ids;
  for (size_t id = 0; id < count; ++id) {
    if (tokens_[id].size() > PieceKey::kLongest) {
      rules_.encoder.encode(tokens_[id], ids);
      take(id, std::span<const int32_t>(ids));
    } else if (!tokens_[id].empty()) {
      keys.push_back(PieceKey::of(tokens_[id]));
      ids_of_keys.push_back(id);
      if (keys.size() == kSeedsAtOnce) merge_short();
    }
  }
  merge_short();
}

std::vector<int32_t> ByteLevelTokenizer::find_unmerged(const std::vector<bool>& literal) const {
  std::vector<int32_t> found;
  merge_tokens(tokens_.size(), [&](size_t id, std::span<const int32_t> ids) {
    const bool is_merged = ids.size() == 1 && ids[0] == static_cast<int32_t>(id);
    if (!is_merged && !(id < literal.size() && literal[id])) found.push_back(static_cast<int32_t>(id));
  });
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<int32_t> ByteLevelTokenizer::unmerged() const {
  std::vector<int32_t> ids;
  for (const auto& [token, id] : rules_.whole) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<PieceSeed> ByteLevelTokenizer::find_seeds() const {
  std::vector<PieceSeed> seeds;
  merge_tokens(std::min(tokens_.size(), kMostSeeds), [&](size_t id, std::span<const int32_t> ids) {
    const std::string_view token = tokens_[id];
    if (token.size() > PieceKey::kLongest) return;
    const auto whole = rules_.whole.find(token);
    const bool is_whole = whole != rules_.whole.end();
    if (is_whole ? whole->second == static_cast<int32_t>(id)
                 : ids.size() == 1 && ids[0] == static_cast<int32_t>(id))
      seeds.push_back({PieceKey::of(token), static_cast<int64_t>(id)});
  });
  return seeds;
}

// Adds the seeds to the token cache. Threads that begin at the same time share this work, so that none waits
// for another. Without seeds, 4 MB of English take 9 % more processor time, and 150 MB 2.6 %.
void ByteLevelTokenizer::help_to_seed() const {
  constexpr size_t kAhead = 24;  // cache lines prefetched ahead, since adding to a line would wait for it
  for (size_t first; (first = seeded_.fetch_add(kSeedsAtOnce)) < to_seed_;) {
    const auto seeds = seeds_.span().subspan(first, std::min(kSeedsAtOnce, to_seed_ - first));
    for (size_t i = 0; i < seeds.size(); ++i) {
      if (i + kAhead < seeds.size()) __builtin_prefetch(&memory_->table.line(seeds[i + kAhead].key), 1);
      const auto id = static_cast<int32_t>(seeds[i].id);
      memory_->table.add(seeds[i].key, memory_->table.pack({&id, 1}));
    }
  }
}

ByteLevelTokenizer::~ByteLevelTokenizer() = default;

std::unique_ptr<CoreTokenizer::Stream> ByteLevelTokenizer::stream(Takers take) const {
  if (!look_ahead_) return nullptr;
  return std::make_unique<PretokenStream>(*this, *look_ahead_, std::move(take));
}

int ByteLevelTokenizer::eod() const {
  if (eod_ < 0) fail_without_end(name_);
  return eod_;
}

void ByteLevelTokenizer::encode(std::string_view utf8, std::vector<int32_t>& ids) const {
  Lease scratch(*this);
  encode_with(*scratch, utf8, {scratch->ids});
  scratch->ids.each_part<int32_t>([&](auto part) { ids.insert(ids.end(), part.begin(), part.end()); });
}

void ByteLevelTokenizer::encode_to(std::string_view utf8, IdBuffer& out) const {
  Lease scratch(*this);
  encode_with(*scratch, utf8, {out});
}

void ByteLevelTokenizer::encode_in_parts(std::string_view utf8, const TakeIds& take) const {
  Lease scratch(*this);
  encode_with(*scratch, utf8, {scratch->ids, &take});
  scratch->ids.each_part<int32_t>(take);
}

void ByteLevelTokenizer::Sink::append(std::span<const int32_t> more) const {
  ids.append(more);
  hand_over_if_long();
}

void ByteLevelTokenizer::Sink::hand_over_if_long() const {
  if (!take || ids.size() < kPieceIds) return;
  ids.each_part<int32_t>(*take);
  ids.clear();
}

/// Calls special(id) for each added token in a text, and plain(text) for what is between them.
template <class Plain, class Special>
void ByteLevelTokenizer::split_at_added(std::string_view utf8, const Plain& plain,
                                        const Special& special) const {
  raw_added_.split(
      utf8, [&](std::string_view rest) { normalized_added_.split(rest, plain, special); }, special);
}

void ByteLevelTokenizer::encode_with(Scratch& scratch, std::string_view utf8, Sink sink) const {
  split_at_added(
      utf8, [&](std::string_view rest) { encode_plain(scratch, rest, sink); },
      [&](int32_t id) {
        sink.ids.append({&id, 1});
      });
}

class ByteLevelTokenizer::TextBatch final : public CoreTokenizer::Batch {
 public:
  TextBatch(const ByteLevelTokenizer& owner, IdBuffer& out)
      : owner_(owner), scratch_(owner), out_(out), pretokens_(scratch_->encoder, out) {}

  void add(std::string_view text) override {
    owner_.split_at_added(
        text, [&](std::string_view rest) { add_plain(rest); },
        [&](int32_t id) {
          pretokens_.put({&id, 1});
        });
  }
  void put(std::span<const int32_t> ids) override { pretokens_.put(ids); }
  void finish() override { pretokens_.flush(); }

 private:
  void add_plain(std::string_view text) {
    if (text.size() <= PretokenBatch::kLongestText && !owner_.cutter_ && !owner_.has_dropped(text))
      return pretokens_.add(text, owner_.find_pretokens_);
    pretokens_.flush();
    owner_.encode_plain(*scratch_, text, {out_});
  }

  const ByteLevelTokenizer& owner_;
  Lease scratch_;
  IdBuffer& out_;
  PretokenBatch pretokens_;
};

std::unique_ptr<CoreTokenizer::Batch> ByteLevelTokenizer::batch(IdBuffer& out) const {
  return std::make_unique<TextBatch>(*this, out);
}

bool ByteLevelTokenizer::has_dropped(std::string_view text) const {
  return std::any_of(dropped_.begin(), dropped_.end(),
                     [&](char byte) { return text.find(byte) != std::string_view::npos; });
}

/// For the few texts with bytes that have no token: what is merged is the rest of a pretoken.
void ByteLevelTokenizer::encode_dropping(Scratch& scratch, std::string_view utf8, const FindPretokens& find,
                                         Sink sink) const {
  const auto take = [&](std::span<const int32_t> ids) { sink.append(ids); };
  for_each_pretoken(find, utf8, [&](std::string_view pretoken) {
    if (!has_dropped(pretoken) || rules_.whole.contains(pretoken))
      return encode_giant(scratch, pretoken, sink);
    std::string rest(pretoken);
    std::erase_if(rest, [&](char byte) { return dropped_.find(byte) != std::string::npos; });
    rules_.encoder.encode_long(rest, take);
  });
}

void ByteLevelTokenizer::encode_plain(Scratch& scratch, std::string_view utf8, Sink sink) const {
  if (!cutter_) return encode_found(scratch, utf8, find_pretokens_, sink);
  const CutText cut = cutter_->cut(utf8);
  encode_found(scratch, cut.text, cut.finder(), sink);
}

void ByteLevelTokenizer::encode_found(Scratch& scratch, std::string_view utf8, const FindPretokens& find,
                                      Sink sink) const {
  if (has_dropped(utf8)) return encode_dropping(scratch, utf8, find, sink);
  while (!utf8.empty()) {
    const size_t count = find(utf8, scratch.ends);
    const std::span<uint32_t> ends = std::span(scratch.ends).first(count);
    const size_t size = ends.back();
    if (size > kLongPretoken) [[unlikely]]
      encode_long(scratch, utf8.substr(0, size), ends, sink);
    else
      scratch.encoder.encode(utf8, ends, sink.ids);
    sink.hand_over_if_long();
    utf8.remove_prefix(size);
  }
}

/// For texts with few but long pretokens: encodes some pretokens at a time and removes them from `ends`, so
/// that ids are handed over before they become many.
void ByteLevelTokenizer::encode_long(Scratch& scratch, std::string_view utf8, std::span<uint32_t> ends,
                                     Sink sink) const {
  while (!ends.empty()) {
    const auto part =
        static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), kLongPretoken) - ends.begin());
    const uint32_t size = ends[part == 0 ? 0 : part - 1];
    if (part == 0)
      encode_giant(scratch, utf8.substr(0, size), sink);
    else
      scratch.encoder.encode(utf8.substr(0, size), ends.first(part), sink.ids);
    sink.hand_over_if_long();
    utf8.remove_prefix(size);
    ends = ends.subspan(std::max<size_t>(part, 1));
    for (uint32_t& end : ends) end -= size;
  }
}

/// Encodes a giant in parts between borders: the cache may know their pieces. A giant without borders is
/// merged in windows.
void ByteLevelTokenizer::encode_giant(Scratch& scratch, std::string_view pretoken, Sink sink) const {
  const auto take = [&](std::span<const int32_t> ids) { sink.append(ids); };
  if (const auto found = rules_.whole.find(pretoken); found != rules_.whole.end())
    return sink.append({&found->second, 1});
  if (!rules_.cut_in_parts) return rules_.encoder.encode_long(pretoken, take);
  while (!pretoken.empty()) {
    size_t size = std::min(pretoken.size(), kLongPretoken);
    while (size < pretoken.size() && !rules_.borders.parts(pretoken, size)) ++size;
    const std::string_view part = pretoken.substr(0, size);
    const auto end = static_cast<uint32_t>(size);
    if (size > 2 * kLongPretoken || rules_.whole.contains(part))
      rules_.encoder.encode_long(part, take);
    else
      scratch.encoder.encode(part, {&end, 1}, sink.ids);
    sink.hand_over_if_long();
    pretoken.remove_prefix(size);
  }
}

std::string ByteLevelTokenizer::hash() const {
  if (!hash_.empty()) return hash_;
  IdentityHash hash;
  hash.add("BPE 2");  // when this changes, so must kPackedVersion (packed_model.cpp)
  hash.add(rule_names_);
  hash.add(static_cast<int64_t>(tokens_.size()));
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (mark_.empty())
      hash.add(tokens_[id]);
    else
      hash.add(replaced(tokens_[id], " ", mark_));
  }
  rules_.encoder.add_to(hash);
  raw_added_.add_to(hash);
  normalized_added_.add_to(hash);
  hash.add(int64_t{eod_});
  return hash.hex();
}

std::string ByteLevelTokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (int32_t id : ids) {
    if (id < 0 || id >= vocab_size()) refuse_token_id(id, tokens_.size());
    bytes += tokens_[static_cast<size_t>(id)];
  }
  return replace_invalid_utf8(bytes);
}

void ByteLevelTokenizer::decode_all(std::span<const int32_t> ids, ByteBuffer& out) const {
  const size_t before = out.size();
  append_texts(tokens_, ids, out);
  const std::string_view bytes(out.data() + before, out.size() - before);
  if (valid_utf8_prefix(bytes) == bytes.size()) return;
  const std::string text = replace_invalid_utf8(bytes);
  out.truncate(before);
  out.append(text.data(), text.size());
}

}  // namespace megalith
