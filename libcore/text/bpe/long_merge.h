#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "libcore/text/bpe/piece_merge.h"

namespace megalith {

/// A pair of tokens and what they are joined to.
struct TokenMerge {
  int32_t left, right, merged;
};

/// Joins the pair of neighbours with the lowest rank, the leftmost of equal ones, until no pair has a rank.
/// Needs 17 bytes of working memory an id. For one thread at a time.
class WindowMerge {
 public:
  struct Token {
    int32_t id;
    uint32_t end;  // among the ids that it is made of: after its last one
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
  /// The minimum of each kFan steps of the level below, so that the next merge is found in a few looks. A
  /// step is a rank in the high bits and a place among the kFan in the low ones.
  struct Level {
    std::vector<int32_t> steps;
    std::vector<uint8_t> min_places;  // for each step, the place in the level below that it comes from
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
  std::vector<Level> levels_;    // from that of the symbols' pairs to one of kFan steps
  size_t height_ = 0;            // levels in use
};

/// How many ids tokens are made of.
class TokenReach {
 public:
  /// `merges`: all merges; fast if they are in the order of their ranks.
  explicit TokenReach(std::span<const TokenMerge> merges);

  /// Whether of() is valid. It is not if a token has more than 2^12 ids or is part of itself: no window would
  /// be long enough.
  bool bounded() const { return bounded_; }
  /// No token that begins with `id` is made of more ids.
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
/// Why this is correct. What merging makes of a piece, it also makes of any run of the piece's tokens alone:
/// no merge reached across the run's ends, and those within came in the same order. Conversely, if merging
/// any two neighbouring tokens alone gives just these two, merging all gives all of them: the first merge
/// across a border would also have been the first for its two neighbours. So if a second text starts inside
/// the first and goes beyond its end, and both have one token in common, the tokens of the whole are the
/// first text's up to that token and the second's after it.
///
/// However the piece continues after a window, there is a last border inside the window or at its end, at
/// most as far from the end as the longest token that begins there reaches. For each place where it may be,
/// the tokens before that place are found (only as far back as needed to have one in common with the
/// window's). What all of them have in common is final.
class LongMerge {
 public:
  using TakeIds = std::function<void(std::span<const int32_t>)>;
  /// The merges of one BytePairEncoder, which must outlive the LongMerge.
  struct Rules {
    MergeTables tables;
    const TokenReach& reach;
    size_t window;  // ids merged at once; more if nothing settles
  };
  /// `take` receives the tokens in order, some at a time.
  LongMerge(const Rules& rules, TakeIds take);

  /// Append the next ids of the piece. Settled ids vanish from the front, so that memory stays bounded.
  std::vector<int32_t>& ids() { return ids_; }
  /// Merges once there are enough ids.
  void advance();
  /// Merges the rest.
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
  std::vector<Token> tokens_;  // of ids_
  std::vector<Token> part_;    // of some of them
  size_t checked_ = 0;         // ids that were merged only to look ahead
};

}  // namespace megalith
