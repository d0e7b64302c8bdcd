#include "libcore/text/byte_level_tokenizer.h"

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/pretokenizer.h"

namespace megalith {
namespace {

constexpr size_t kPieceIds = size_t{1} << 16;  // handed over at once

/// Size of the n-th thread's cache (PieceCache): the first get 2.25 MiB, about the second-level cache, later
/// ones less, so that 128 of them hold 65 MiB.
int cache_bits(size_t n) {
  return n < 8 ? 15 : n < 24 ? 14 : 12;
}

}  // namespace

struct ByteLevelTokenizer::Scratch {
  explicit Scratch(int bits) : cache(bits) {}
  PieceCache cache;
  std::vector<int32_t> piece;  // ids of one pretoken
};

/// A Scratch for the length of one call.
class ByteLevelTokenizer::Lease {
 public:
  explicit Lease(const ByteLevelTokenizer& owner) : owner_(owner) {
    const std::lock_guard lock(owner_.mutex_);
    if (owner_.idle_.empty()) return;
    scratch_ = std::move(owner_.idle_.back());
    owner_.idle_.pop_back();
  }
  ~Lease() {
    if (!scratch_) return;
    const std::lock_guard lock(owner_.mutex_);
    owner_.idle_.push_back(std::move(scratch_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Scratch& get() {
    if (!scratch_) scratch_ = std::make_unique<Scratch>(cache_bits(count()));
    return *scratch_;
  }

 private:
  size_t count() const {
    const std::lock_guard lock(owner_.mutex_);
    return owner_.made_++;
  }
  const ByteLevelTokenizer& owner_;
  std::unique_ptr<Scratch> scratch_;
};

ByteLevelTokenizer::ByteLevelTokenizer(ByteLevelModel model)
    : name_(std::move(model.name)),
      tokens_(std::move(model.tokens)),
      encoder_(model.byte_ids, model.merges),
      raw_added_(std::move(model.raw_added)),
      normalized_added_(std::move(model.normalized_added)),
      eod_(model.eod) {}

ByteLevelTokenizer::~ByteLevelTokenizer() = default;

int ByteLevelTokenizer::eod() const {
  if (eod_ < 0)
    fail(ErrorKind::kData, name_,
         ": the tokenizer's files name no end-of-document token; wanted \"eos_token\" in ",
         "tokenizer_config.json, or a token \"<|endoftext|>\"");
  return eod_;
}

void ByteLevelTokenizer::encode(std::string_view utf8, std::vector<int32_t>& ids) const {
  encode_to(utf8, {ids});
}

void ByteLevelTokenizer::encode_in_pieces(std::string_view utf8, const TakeIds& take) const {
  std::vector<int32_t> ids;
  encode_to(utf8, {ids, &take});
  take(ids);
}

void ByteLevelTokenizer::encode_to(std::string_view utf8, Sink sink) const {
  Lease scratch(*this);
  raw_added_.split(
      utf8, [&](std::string_view rest) { encode_normalized(rest, scratch.get(), sink); },
      [&](int32_t id) { sink.ids.push_back(id); });
}

void ByteLevelTokenizer::encode_normalized(std::string_view utf8, Scratch& scratch, Sink sink) const {
  normalized_added_.split(
      utf8, [&](std::string_view rest) { encode_plain(rest, scratch, sink); },
      [&](int32_t id) { sink.ids.push_back(id); });
}

void ByteLevelTokenizer::encode_plain(std::string_view utf8, Scratch& scratch, Sink sink) const {
  std::vector<int32_t>& ids = sink.ids;
  const char* const end = utf8.data() + utf8.size();
  for_each_gpt2_pretoken(utf8, [&](std::string_view piece) {
    if (sink.take && ids.size() >= kPieceIds) {
      (*sink.take)(ids);
      ids.clear();
    }
    std::span<const int32_t> found = scratch.cache.find(piece, static_cast<size_t>(end - piece.data()));
    if (found.empty()) {
      encoder_.encode(piece, scratch.piece);
      scratch.cache.put(piece, scratch.piece);
      found = scratch.piece;
    }
    ids.insert(ids.end(), found.begin(), found.end());
  });
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
