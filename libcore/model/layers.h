#pragma once

namespace megalith {

/// The part of a model on one pipeline chunk: transformer layers [first, first + count) by global number, and
/// whether the embedding precedes them and the head (final norm, logits, loss) follows them.
struct Layers {
  int first = 0, count = 0;
  bool embedding = true, head = true;
};

}  // namespace megalith
