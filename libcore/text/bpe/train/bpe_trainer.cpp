#include "libcore/text/bpe/train/bpe_trainer.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/text/bpe/train/pair_map.h"
#include "libcore/text/unicode/byte_alphabet.h"

namespace megalith {
namespace {

/// One distinct pretoken. Its ids, symbols[begin, begin + size), shrink in place, since a merge only shortens
/// them.
struct Word {
  size_t begin;
  size_t size;
  int64_t times;
};

/// A pair that may be merged next, with all words that hold it. All occurrences of a pair arise in one step:
/// the merge that forms the younger of its tokens. (No token is formed in two ways, since the same text
/// between the same boundaries goes through the same merges.) After that step the count only falls, so the
/// count stored here may be too high but never too low.
struct Candidate {
  int64_t count;
  IdPair pair;
  std::vector<uint32_t> words;

  bool operator<(const Candidate& other) const {  // the greatest is merged first
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class BpeTrainer {
 public:
  BpeTrainer(const PieceCounts& pieces, const std::vector<std::string>& special_tokens) {
    result_.special_tokens = special_tokens;
    for (const std::string& token : special_tokens) add_token(token);
    add_bytes();
    add_words(pieces);
  }

  TrainedBpe train(size_t vocab_size) {
    Progress progress("merge", static_cast<int64_t>(vocab_size - result_.tokens.size()), "merges");
    queue_pairs();
    while (result_.tokens.size() < vocab_size) {
      const auto best = next_candidate();
      if (!best) break;
      merge(*best);
      progress.advance_to(static_cast<int64_t>(result_.merges.size()));
    }
    return std::move(result_);
  }

 private:
  int32_t add_token(const std::string& token) {
    const auto [at, is_new] = ids_.emplace(token, static_cast<int32_t>(result_.tokens.size()));
    if (is_new) result_.tokens.push_back(token);
    return at->second;
  }

  void add_bytes() {
    std::vector<uint8_t> bytes(256);
    for (size_t i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
    std::sort(bytes.begin(), bytes.end(),
              [](uint8_t a, uint8_t b) { return byte_to_code_point(a) < byte_to_code_point(b); });
    for (uint8_t byte : bytes)
      byte_ids_[byte] = add_token(to_byte_alphabet(std::string(1, static_cast<char>(byte))));
  }

  void add_words(const PieceCounts& pieces) {
    words_.reserve(pieces.size());
    pieces.for_each([&](std::string_view piece, int64_t times) {
      if (piece.size() < 2) return;  // a single byte holds no pair
      words_.push_back({symbols_.size(), piece.size(), times});
      for (char c : piece) symbols_.push_back(byte_ids_[static_cast<uint8_t>(c)]);
    });
    if (words_.size() > UINT32_MAX)
      fail(ErrorKind::kData, words_.size(), " different pretokens; at most ", UINT32_MAX, " fit");
  }

  void change(IdPair pair, int64_t by, uint32_t word) {
    counts_[pair] += by;
    if (by < 0) return;
    std::vector<uint32_t>& where = touched_[pair];
    if (where.empty() || where.back() != word) where.push_back(word);
  }

  void queue_pairs() {
    for (uint32_t w = 0; w < words_.size(); ++w) {
      const Word& word = words_[w];
      for (size_t i = word.begin; i + 1 < word.begin + word.size; ++i)
        change(id_pair(symbols_[i], symbols_[i + 1]), word.times, w);
    }
    queue_touched();
  }

  void queue_touched() {
    touched_.for_each([&](IdPair pair, std::vector<uint32_t>& words) {
      const int64_t count = counts_[pair];
      if (count <= 0) return;
      queue_.push_back({count, pair, std::move(words)});
      std::push_heap(queue_.begin(), queue_.end());
    });
    touched_ = PairMap<std::vector<uint32_t>>();
  }

  std::optional<Candidate> next_candidate() {
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end());
      Candidate top = std::move(queue_.back());
      queue_.pop_back();
      const int64_t count = counts_[top.pair];
      if (count == top.count) return top;
      if (count <= 0) continue;
      top.count = count;
      queue_.push_back(std::move(top));
      std::push_heap(queue_.begin(), queue_.end());
    }
    return std::nullopt;
  }

  void merge(const Candidate& best) {
    const int32_t left = left_of(best.pair);
    const int32_t right = right_of(best.pair);
    const int32_t merged =
        add_token(result_.tokens[static_cast<size_t>(left)] + result_.tokens[static_cast<size_t>(right)]);
    result_.merges.push_back({left, right, merged});
    for (uint32_t word : best.words) merge_in_word(word, result_.merges.back());
    queue_touched();
  }

  /// The count of the merged pair itself is not updated, since the pair never occurs again.
  void merge_in_word(uint32_t number, const BytePairEncoder::Merge& merge) {
    Word& word = words_[number];
    int32_t* const ids = symbols_.data() + word.begin;
    size_t out = 0;
    for (size_t in = 0; in < word.size; ++out) {
      if (in + 1 == word.size || ids[in] != merge.left || ids[in + 1] != merge.right) {
        ids[out] = ids[in++];
        continue;
      }
      if (out > 0) {
        change(id_pair(ids[out - 1], merge.left), -word.times, number);
        change(id_pair(ids[out - 1], merge.merged), word.times, number);
      }
      in += 2;
      ids[out] = merge.merged;
      if (in < word.size) {
        change(id_pair(merge.right, ids[in]), -word.times, number);
        change(id_pair(merge.merged, ids[in]), word.times, number);
      }
    }
    word.size = out;
  }

  TrainedBpe result_;
  std::unordered_map<std::string, int32_t> ids_;
  std::array<int32_t, 256> byte_ids_{};
  std::vector<Word> words_;
  std::vector<int32_t> symbols_;
  PairMap<int64_t> counts_;
  PairMap<std::vector<uint32_t>>
      touched_;                   // pairs formed since the last queue_touched(), each with its words
  std::vector<Candidate> queue_;  // a heap
};

}  // namespace

TrainedBpe train_bpe(const PieceCounts& pieces, int vocab_size,
                     const std::vector<std::string>& special_tokens) {
  const size_t min_size = special_tokens.size() + 256;
  if (vocab_size < 0 || static_cast<size_t>(vocab_size) < min_size)
    fail(ErrorKind::kUsage, "--vocab-size ", vocab_size, " is too small; wanted at least ", min_size,
         ": 256 bytes and ", special_tokens.size(), " special tokens");
  return BpeTrainer(pieces, special_tokens).train(static_cast<size_t>(vocab_size));
}

}  // namespace megalith
