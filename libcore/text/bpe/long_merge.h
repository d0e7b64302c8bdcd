#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "libcore/text/bpe/piece_merge.h"

namespace megalith {

/// A pair of tokens, and the token that they are joined to.
struct TokenMerge {
  int32_t left, right, merged;
};

/// Merges ids: joins the pair of neighbours with the lowest rank, the leftmost of equal ones, until no pair
/// has a rank. Needs 17 bytes of working memory per id. For one thread at a time.
class WindowMerge {
 public:
  struct Token {
    int32_t id;
    uint32_t end;  // index in `ids` (see run()) after the last id that the token is made of
  };
  explicit WindowMerge(const MergeTables& tables) : tables_(tables) {}

  /// Replaces `tokens` with those of `ids`. Throws kData for more than kMaxIds.
  static constexpr size_t kMaxIds = UINT32_MAX - 1;
  void run(std::span<const int32_t> ids, std::vector<Token>& tokens);

 private:
  static constexpr int kFanBits = 6;
  static constexpr size_t kFan = size_t{1} << kFanBits;
  struct Symbol {
    int32_t id;
    uint32_t previous, next;
  };
  /// One level of a tree of minima: each step is the smallest of kFan steps of the level below, so that the
  /// next merge is found with a few reads. A step holds a rank in the high bits and a place among the kFan in
  /// the low ones.
  struct Level {
    std::vector<int32_t> steps;
    std::vector<uint8_t> min_places;  // for each step, its place among the kFan steps of the level below
  };
  static int32_t step(uint32_t rank, size_t place) {
    return static_cast<int32_t>(rank << kFanBits | static_cast<uint32_t>(place % kFan));
  }
  void start(std::span<const int32_t> ids);
  void resize_levels();
  void join(uint32_t at, uint32_t rank);
  void set_rank(uint32_t at);
  void renew(size_t level, size_t group);
  void renew_above(size_t place);

  const MergeTables tables_;
  std::vector<Symbol> symbols_;  // a ring, with kNobody between its ends
  std::vector<Level> levels_;    // the first has a step for each pair of symbols, the last up to kFan steps
  size_t height_ = 0;            // levels in use
};

/// For each id, the length of the longest token that begins with it. Lengths are numbers of ids.
class TokenReach {
 public:
  /// `merges`: all merges; fast if they are in the order of their ranks.
  explicit TokenReach(std::span<const TokenMerge> merges);

  /// Whether of() is valid. It is not valid if a token has more than 2^12 ids or is part of itself: no window
  /// would then be long enough.
  bool bounded() const { return bounded_; }
  /// The number of ids in the longest token that begins with `id`.
  uint32_t of(int32_t id) const {
    return static_cast<size_t>(id) < reach_.size() ? reach_[static_cast<size_t>(id)] : 1;
  }
  uint32_t longest() const { return longest_; }

 private:
  std::vector<uint32_t> reach_;
  uint32_t longest_ = 1;
  bool bounded_ = true;
};

/// Merges a piece of any length in little memory, window by window. Each window begins where a token
/// certainly begins, whatever follows the window.
///
/// Why this is correct. Take some consecutive tokens of a merged piece: merging their bytes alone gives the
/// same tokens, since no merge reached across the two ends, and the merges within come in the same order.
/// Conversely, if merging any two neighbouring tokens alone gives just these two, merging all gives all of
/// them: the first merge across a border would also have been the first for its two neighbours. So let a
/// second text start inside the first and go beyond its end. If the results of both share one token, the
/// tokens of the whole are those of the first text up to the shared token and those of the second after it.
///
/// However the piece continues after a window, some last border lies inside the window or at its end. Its
/// distance from the end is at most the length of the longest token that can begin at the border. For each
/// place where this border may be, the tokens before that place are computed, only as far back as needed to
/// share one with the window's tokens. Tokens that all these results have in common are final.
class LongMerge {
 public:
  using TakeIds = std::function<void(std::span<const int32_t>)>;
  /// The merges of one BytePairEncoder, which must outlive the LongMerge.
  struct Rules {
    MergeTables tables;
    const TokenReach& reach;
    size_t window;  // number of ids merged at once; grows if none of the tokens is final
  };
  /// `take` receives the tokens in order, some at a time.
  LongMerge(const Rules& rules, TakeIds take);

  /// The caller appends the next ids of the piece here. Settled ids are removed from the front, so that
  /// memory stays bounded.
  std::vector<int32_t>& ids() { return ids_; }
  /// Merges a window if there are enough ids.
  void advance();
  /// Merges the remaining ids.
  void finish();

 private:
  using Token = WindowMerge::Token;
  uint32_t final_tokens();
  uint32_t in_common(uint32_t tokens, uint32_t end);
  uint32_t begin_of(uint32_t token) const { return token == 0 ? 0 : tokens_[token - 1].end; }
  void hand_over(uint32_t tokens);

  WindowMerge merge_;
  const TokenReach& reach_;
  const size_t max_window_;
  size_t window_, needed_;
  TakeIds take_;
  std::vector<int32_t> ids_, out_;
  std::vector<Token> tokens_;  // tokens of ids_
  std::vector<Token> part_;    // tokens of a part of ids_
  size_t checked_ = 0;         // ids that were merged only to look ahead
};

}  // namespace megalith
