#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace megalith {

/// A text whose last `scored` tokens are to be scored, each given all tokens before it. The last token is
/// only a target: a model reads the others. 1 <= scored < tokens.size().
struct ScoredTokens {
  std::vector<int32_t> tokens;
  int64_t scored = 0;

  template <class V>
  void members(V&& v) {  // see parallel/exchange.h
    v(tokens, scored);
  }
  std::span<const int32_t> inputs() const { return std::span(tokens).first(tokens.size() - 1); }
};

/// The order in which texts are read through one key/value cache so that beginnings that texts share are read
/// once: texts with the same context, such as the choices of a question, and contexts with the same examples.
struct ReadingPlan {
  /// Rows of one text: its tokens [past, past + rows). The cache holds those before.
  struct Piece {
    size_t text;
    int64_t past, rows;
  };
  /// A row after which a token is to be scored. Rows are counted through all pieces.
  struct Target {
    int64_t row;
    size_t text;
    int32_t token;
  };
  std::vector<Piece> pieces;
  std::vector<Target> targets;  // by row
  int64_t rows = 0;             // of all pieces
  int64_t longest = 0;          // the tokens that the longest text reads
};

/// What a reader of texts holds at once.
struct ReadingSize {
  int64_t rows = 0;      // tokens of a pass; 0: nothing is read
  int64_t targets = 0;   // tokens that are scored at once
  int64_t capacity = 0;  // positions of the cache
};

/// Texts are read in the order of their tokens, since neighbours then share the most.
ReadingPlan plan_reading(std::span<const ScoredTokens> texts);

}  // namespace megalith
