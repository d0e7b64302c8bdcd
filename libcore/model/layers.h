#pragma once

namespace megalith {

/// The part of a model on one pipeline chunk: transformer layers [first, first + count), numbered over the
/// whole model; with `embedding` also the embedding before them, with `head` also the head (final norm,
/// logits, loss) after them.
struct Layers {
  int first = 0, count = 0;
  bool embedding = true, head = true;
};

}  // namespace megalith
