#include "libcore/text/byte_level_tokenizer.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/identity_hash.h"
#include "libcore/text/piece_cache.h"

namespace megalith {
namespace {

constexpr size_t kPieceIds = size_t{1} << 16;  // handed over at once
constexpr size_t kEnds = 2048;                 // pretokens found at once

constexpr size_t kBatch = 64;  // looked up at once

/// Memory of the n-th thread's caches: the first two get what a corpus of gigabytes fills, later ones less,
/// so that 16 of them hold 100 MiB.
struct CacheSize {
  int table_bits;     // lines of a PieceTable
  size_t long_bytes;  // of a LongPieceCache
};
CacheSize cache_size(size_t n) {
  if (n < 2) return {.table_bits = 18, .long_bytes = size_t{8} << 20};
  if (n < 8) return {.table_bits = 16, .long_bytes = size_t{2} << 20};
  return {.table_bits = 14, .long_bytes = size_t{1} << 19};
}

/// Where this thread looks first for its working memory.
size_t thread_number() {
  static std::atomic<size_t> next{0};
  thread_local const size_t number = next++;
  return number;
}

}  // namespace

struct ByteLevelTokenizer::Scratch {
  Scratch(CacheSize size, std::span<const PieceSeed> seeds)
      : table(size.table_bits), longer(size.long_bytes) {
    for (const PieceSeed& seed : seeds) {
      const auto id = static_cast<int32_t>(seed.id);
      table.put(seed.key, {&id, 1});
    }
  }
  PieceTable table;
  LongPieceCache longer;
  std::vector<int32_t> piece, part;  // ids of one pretoken, and of a part of one
  std::array<uint32_t, kEnds> ends;
  IdBuffer ids{sizeof(int32_t)};

  /// The ids of a piece, or an empty span; until the next put().
  std::span<const int32_t> find(std::string_view text, const PieceKey& key) const {
    const PieceTable::Entry* const entry = table.line(key).find(key);
    if (entry && entry->count() <= PieceTable::kIds) return std::span(entry->ids).first(entry->count());
    const bool may_be_longer = entry || text.size() > PieceKey::kLongest;
    return may_be_longer ? longer.find(text) : std::span<const int32_t>();
  }
  void put(std::string_view text, const PieceKey& key, std::span<const int32_t> of_text) {
    table.put(key, of_text);
    if (text.size() > PieceKey::kLongest || of_text.size() > PieceTable::kIds) longer.put(text, of_text);
    if (of_text.size() > PieceTable::kIds) table.mark(key);
  }

  /// Gives back what an unusually long text took.
  void trim() {
    constexpr size_t kKept = size_t{1} << 20;
    if (ids.bytes().capacity() > kKept) ids = IdBuffer(sizeof(int32_t));
    for (std::vector<int32_t>* list : {&piece, &part})
      if (list->capacity() > kKept) *list = {};
  }
};

/// A Scratch for the length of one call.
class ByteLevelTokenizer::Lease {
 public:
  explicit Lease(const ByteLevelTokenizer& owner) : owner_(owner) {
    for (size_t i = 0; i < kIdle && !scratch_; ++i) {
      std::atomic<Scratch*>& idle = slot(i);
      if (idle.load(std::memory_order_relaxed)) scratch_ = idle.exchange(nullptr, std::memory_order_acquire);
    }
    if (!scratch_) scratch_ = new Scratch(cache_size(owner_.made_++), owner_.seeds_);
  }
  ~Lease() {
    scratch_->trim();
    for (size_t i = 0; i < kIdle; ++i) {
      Scratch* none = nullptr;
      if (slot(i).compare_exchange_strong(none, scratch_, std::memory_order_release)) return;
    }
    delete scratch_;
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Scratch& operator*() { return *scratch_; }
  Scratch* operator->() { return scratch_; }

 private:
  std::atomic<Scratch*>& slot(size_t i) const { return owner_.idle_[(thread_number() + i) % kIdle]; }

  const ByteLevelTokenizer& owner_;
  Scratch* scratch_ = nullptr;
};

ByteLevelTokenizer::ByteLevelTokenizer(ByteLevelModel model)
    : name_(std::move(model.name)),
      tokens_(std::move(model.tokens)),
      // Where merges may be ignored, the table's ids of a whole pretoken are not those of a part.
      cut_in_parts_(!model.ignore_merges && !model.characters),
      encoder_(model.byte_ids, model.merges, model.ranks, std::move(model.characters)),
      borders_(tokens_, model.merges),
      find_pretokens_(std::move(model.find_pretokens)),
      raw_added_(std::move(model.raw_added)),
      normalized_added_(std::move(model.normalized_added)),
      eod_(model.eod),
      rules_(std::move(model.rules)),
      hash_(std::move(model.hash)) {
  // Without a normalizer one group is as good as the other; two groups are looked for one after the other.
  if (raw_added_.empty()) std::swap(raw_added_, normalized_added_);
  if (model.ignore_merges) rules_ += "; whole tokens first";
  for (size_t id = 0; model.ignore_merges && id < tokens_.size(); ++id)
    if (!tokens_[id].empty() && !(id < model.literal.size() && model.literal[id]))
      whole_.emplace(tokens_[id], static_cast<int32_t>(id));
  seeds_ = model.seeds.empty() ? find_seeds() : std::move(model.seeds);
}

std::vector<PieceSeed> ByteLevelTokenizer::find_seeds() const {
  std::vector<PieceSeed> seeds;
  std::vector<int32_t> ids;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (tokens_[i].empty() || tokens_[i].size() > PieceKey::kLongest) continue;
    encode_piece(tokens_[i], ids);
    if (ids.size() == 1 && ids[0] == id) seeds.push_back({PieceKey::of(tokens_[i]), id});
  }
  return seeds;
}

ByteLevelTokenizer::~ByteLevelTokenizer() {
  for (std::atomic<Scratch*>& idle : idle_) delete idle.load();
}

int ByteLevelTokenizer::eod() const {
  if (eod_ < 0)
    fail(ErrorKind::kData, name_,
         ": the tokenizer's files name no end-of-document token; wanted \"eos_token\" in ",
         "tokenizer_config.json, or a token \"<|endoftext|>\"");
  return eod_;
}

void ByteLevelTokenizer::encode(std::string_view utf8, std::vector<int32_t>& ids) const {
  Lease scratch(*this);
  scratch->ids.clear();
  encode_with(*scratch, utf8, {scratch->ids});
  const auto found = scratch->ids.ids<int32_t>();
  ids.insert(ids.end(), found.begin(), found.end());
}

void ByteLevelTokenizer::encode_to(std::string_view utf8, IdBuffer& out) const {
  Lease scratch(*this);
  encode_with(*scratch, utf8, {out});
}

void ByteLevelTokenizer::encode_in_pieces(std::string_view utf8, const TakeIds& take) const {
  Lease scratch(*this);
  scratch->ids.clear();
  encode_with(*scratch, utf8, {scratch->ids, &take});
  take(scratch->ids.ids<int32_t>());
}

void ByteLevelTokenizer::encode_with(Scratch& scratch, std::string_view utf8, Sink sink) const {
  const auto special = [&](int32_t id) { sink.ids.append({&id, 1}); };
  const auto plain = [&](std::string_view rest) { encode_plain(scratch, rest, sink); };
  raw_added_.split(
      utf8, [&](std::string_view rest) { normalized_added_.split(rest, plain, special); }, special);
}

void ByteLevelTokenizer::encode_piece(std::string_view piece, std::vector<int32_t>& ids) const {
  const auto whole = whole_.find(piece);
  if (whole == whole_.end())
    encoder_.encode(piece, ids);
  else
    ids.assign(1, whole->second);
}

void ByteLevelTokenizer::encode_plain(Scratch& scratch, std::string_view utf8, Sink sink) const {
  while (!utf8.empty()) {
    const size_t count = find_pretokens_(utf8, scratch.ends);
    const std::span<const uint32_t> ends = std::span(scratch.ends).first(count);
    if (sink.ids.width() == sizeof(uint16_t))
      encode_pretokens<uint16_t>(scratch, utf8, ends, sink.ids);
    else
      encode_pretokens<int32_t>(scratch, utf8, ends, sink.ids);
    utf8.remove_prefix(ends.back());
    if (sink.take && sink.ids.size() >= kPieceIds) {
      (*sink.take)(sink.ids.ids<int32_t>());
      sink.ids.clear();
    }
  }
}

/// The pretokens of `text` that end at `ends`. First all keys, so that the lines of the table are on their
/// way before they are needed, then the ids, without a branch that depends on how many they are.
template <class Id>
void ByteLevelTokenizer::encode_pretokens(Scratch& scratch, std::string_view text,
                                          std::span<const uint32_t> ends, IdBuffer& ids) const {
  struct Probe {
    PieceKey key;
    const PieceTable::Line* line;
  };
  std::array<Probe, kBatch> probes;
  Id* out = ids.extend<Id>(ends.back() + PieceTable::kIds);  // at most one for each byte
  size_t begin = 0;
  for (size_t from = 0; from < ends.size(); from += kBatch) {
    const std::span<const uint32_t> batch = ends.subspan(from, std::min(kBatch, ends.size() - from));
    size_t at = begin;
    for (size_t i = 0; i < batch.size(); ++i) {
      const size_t size = batch[i] - at;
      const PieceKey key = at + sizeof key <= text.size() ? PieceKey::of(text.data() + at, size)
                                                          : PieceKey::of(text.substr(at, size));
      probes[i] = {key, &scratch.table.line(key)};
      __builtin_prefetch(probes[i].line);
      at = batch[i];
    }
    for (size_t i = 0; i < batch.size(); begin = batch[i++]) {
      const PieceTable::Entry* const entry = probes[i].line->find(probes[i].key);
      if (entry && entry->count() <= PieceTable::kIds) [[likely]] {
        for (size_t k = 0; k < PieceTable::kIds; ++k) out[k] = static_cast<Id>(entry->ids[k]);
        out += entry->count();
      } else {
        for (int32_t id : encode_unknown(scratch, text.substr(begin, batch[i] - begin), probes[i].key))
          *out++ = static_cast<Id>(id);
      }
    }
  }
  ids.finish(out);
}

/// The ids of a piece whose ids are not in the table. They last until the next call.
std::span<const int32_t> ByteLevelTokenizer::encode_unknown(Scratch& scratch, std::string_view piece,
                                                            const PieceKey& key) const {
  if (const auto known = scratch.find(piece, key); !known.empty()) return known;
  const bool ascii = std::all_of(piece.begin(), piece.end(), [](char c) { return c >= 0; });
  if (ascii || !cut_in_parts_) {
    encode_piece(piece, scratch.piece);
    scratch.put(piece, key, scratch.piece);
  } else {
    encode_in_parts(scratch, piece);
    scratch.table.put(key, scratch.piece);  // a longer one is as quickly put together again
  }
  return scratch.piece;
}

/// Fills scratch.piece with the ids of `piece`, part by part between borders that no merge crosses.
void ByteLevelTokenizer::encode_in_parts(Scratch& scratch, std::string_view piece) const {
  scratch.piece.clear();
  size_t begin = 0;
  for (size_t at = 1; at <= piece.size(); ++at) {
    if (at < piece.size() && !borders_.parts(piece, at)) continue;
    const std::span<const int32_t> ids = encode_part(scratch, piece.substr(begin, at - begin));
    scratch.piece.insert(scratch.piece.end(), ids.begin(), ids.end());
    begin = at;
  }
}

std::span<const int32_t> ByteLevelTokenizer::encode_part(Scratch& scratch, std::string_view part) const {
  const PieceKey key = PieceKey::of(part);
  if (const auto known = scratch.find(part, key); !known.empty()) return known;
  encoder_.encode(part, scratch.part);
  scratch.put(part, key, scratch.part);
  return scratch.part;
}

std::string ByteLevelTokenizer::hash() const {
  if (!hash_.empty()) return hash_;
  IdentityHash hash;
  hash.add("BPE 2");  // when this changes, so must the name of the kept files (gpt2_files.cpp)
  hash.add(rules_);
  hash.add(static_cast<int64_t>(tokens_.size()));
  for (const std::string& token : tokens_) hash.add(token);
  encoder_.add_to(hash);
  raw_added_.add_to(hash);
  normalized_added_.add_to(hash);
  hash.add(int64_t{eod_});
  return hash.hex();
}

std::string ByteLevelTokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (int32_t id : ids) {
    if (id < 0 || id >= vocab_size() || tokens_[static_cast<size_t>(id)].empty())
      fail(ErrorKind::kData, "token id ", id, " is not in the vocabulary; ids are 0 to ", vocab_size() - 1);
    bytes += tokens_[static_cast<size_t>(id)];
  }
  return replace_invalid_utf8(bytes);
}

}  // namespace megalith
