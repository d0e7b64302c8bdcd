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

/// Joins the neighbours of lowest rank, the leftmost first, until no pair has one. Needs 17 bytes of working
/// memory an id; one thread at a time.
class WindowMerge {
 public:
  struct Token {
    int32_t id;
    uint32_t end;  // in the ids that it is made of: after its last one
  };
  explicit WindowMerge(const MergeTables& tables) : tables_(tables) {}

  /// Replaces `tokens` by those of `ids`. Throws kData for more than kMaxIds.
  static constexpr size_t kMaxIds = UINT32_MAX - 1;
  void run(std::span<const int32_t> ids, std::vector<Token>& tokens);

 private:
  static constexpr int kFanBits = 6;
  static constexpr size_t kFan = size_t{1} << kFanBits;
  struct Symbol {
    int32_t id;
    uint32_t previous, next;
  };
  /// The smallest of each kFan steps, so that the next merge is found in a few looks: a step is a rank above
  /// a place within the kFan.
  struct Level {
    std::vector<int32_t> steps;
    std::vector<uint8_t> min_places;  // of each step the place in the level below that it comes from
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
  std::vector<Symbol> symbols_;  // a ring with nobody between its ends
  std::vector<Level> levels_;    // first that of the symbols' pairs, last one of kFan steps
  size_t height_ = 0;            // levels in use
};

/// How many ids tokens are made of.
class TokenReach {
 public:
  /// `merges`: all there are; fast where they come in the order of their ranks.
  explicit TokenReach(std::span<const TokenMerge> merges);

  /// Whether of() says anything: not where a token has more than 2^12 ids, or is part of itself, because no
  /// window would be long enough.
  bool bounded() const { return bounded_; }
  /// No token that begins with `id` is made of more.
  uint32_t of(int32_t id) const {
    return static_cast<size_t>(id) < reach_.size() ? reach_[static_cast<size_t>(id)] : 1;
  }
  uint32_t longest() const { return longest_; }

 private:
  std::vector<uint32_t> reach_;
  uint32_t longest_ = 1;
  bool bounded_ = true;
};

/// Merges a piece of any length in little memory: window by window, of which each begins where a token begins
/// for certain, whatever comes after the window.
///
/// Why that is so. What merging gives for a piece it gives for any run of the tokens by itself: no merge
/// reached across the run's ends, and those within came in the same order. The other way round, tokens of
/// which each two neighbours are what merging gives for the two together, are what it gives for all: the
/// first merge across a border would have been the first for these two, too. So where the tokens of a text
/// and of another one that goes on from a place within it have one token in common, the first text's tokens
/// up to this one and the second's after it are those of the whole.
///
/// Now the tokens of ids that go on after a window have a last border in it or at its end, at most as far
/// from the end as the longest token that begins there reaches. For each place where it may be, the tokens
/// before that place are found (only as far back as it takes to have one in common with the window's), and
/// what all of them have in common is final.
class LongMerge {
 public:
  using TakeIds = std::function<void(std::span<const int32_t>)>;
  /// Which tokens there are, by one BytePairEncoder, which must outlive the LongMerge.
  struct Rules {
    MergeTables tables;
    const TokenReach& reach;
    size_t window;  // ids merged together, or more if nothing settles
  };
  /// `take` is given the tokens in order, some at a time.
  LongMerge(const Rules& rules, TakeIds take);

  /// Append the ids with which the piece goes on. Settled ones vanish from the front, so that memory stays
  /// bounded.
  std::vector<int32_t>& ids() { return ids_; }
  /// Merges when there are enough ids.
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
  size_t checked_ = 0;         // ids that were merged only to look
};

}  // namespace megalith
