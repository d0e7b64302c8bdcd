#pragma once

namespace megalith {

/// What one pipeline chunk holds: transformer layers [first, first + count) by global number, and whether the
/// embedding stands before them and the head (final norm, logits, loss) after them.
struct Layers {
  int first = 0, count = 0;
  bool embedding = true, head = true;
};

}  // namespace megalith
