#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/unigram/unigram_model.h"

namespace megalith {

/// In bytes. SentencePiece refuses pieces of 8000.
constexpr size_t kLongestUnigramToken = UINT16_MAX;

/// SentencePiece subtracts a sum beyond this from all sums, to keep their precision.
constexpr float kFarthestSum = 100000;

/// Finds the best way to cut a text (see UnigramRules), with the sums of the reference: `Sum` is float or
/// double. Needs two bytes for each byte of a text. A text that arrives in parts is passed on as soon as all
/// ways that may still be the best have the same beginning, so most need memory for a few tokens only.
template <class Sum>
class UnigramLattice {
 public:
  /// Takes the tokens and unknown characters of the best way, in order.
  using TakePiece = std::function<void(std::string_view piece)>;
  UnigramLattice(const UnigramTables& tables, double unknown_score, TakePiece take);

  /// Cuts a text after one whose sum is `sum`. Returns the sum of both.
  Sum cut(std::string_view text, Sum sum);

  /// The same for a text that arrives in parts, which must consist of whole characters.
  void begin(Sum sum);
  void add(std::string_view part);
  Sum finish();

  /// Frees memory that an unusually long text took.
  void trim();

 private:
  /// The best sum at each place from at_ on, in a ring.
  class Sums {
   public:
    explicit Sums(size_t places) : ring_(std::bit_ceil(places)) {}
    Sum& operator[](size_t at) { return ring_[(base_ + at) & (ring_.size() - 1)]; }
    /// Place 0 is then where place `bytes` was.
    void shift(size_t bytes) { base_ += bytes; }

   private:
    std::vector<Sum> ring_;
    size_t base_ = 0;
  };
  void start(std::string_view text, Sum sum);
  void advance(size_t stop);
  void rebase();
  void offer(size_t at, size_t bytes, Sum sum);
  std::optional<size_t> common_place() const;
  void pass_on(size_t end);
  void pass_on_early();

  PrefixTrie trie_;
  const UnigramTables& tables_;
  Sum unknown_score_;
  TakePiece take_;
  size_t longest_;         // bytes of the longest token or character
  std::string held_;       // what text_ is, if the text arrives in parts
  std::string_view text_;  // what is not passed on yet
  size_t at_ = 0;          // all tokens that begin before are found
  size_t last_ = 0;        // the last place where one of them ends
  /// For each place in text_ the bytes of the best last token before it; 0: no token that was found ends
  /// there.
  std::vector<uint16_t> lengths_;
  Sums best_;
  size_t check_at_ = 0;  // the size of held_ at which to try to pass something on
};

extern template class UnigramLattice<float>;
extern template class UnigramLattice<double>;

}  // namespace megalith
