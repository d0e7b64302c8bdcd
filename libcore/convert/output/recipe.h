#pragma once

#include <string>
#include <vector>

#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/checkpoint/views/rows.h"

namespace megalith {

/// Where the elements of a tensor to be written come from: blocks of one of our tensors taken as a matrix,
/// one below the other, transposed at the end perhaps.
struct Recipe {
  std::string source;                    // our name; empty: zeros
  MatrixForm form;                       // of the whole source
  std::vector<MatrixBlock> blocks = {};  // at least one; all of the same columns
  // more rows at the end, each like the last one of the blocks (a padded vocabulary, as Megatron needs)
  int64_t repeated = 0;
  bool transposed = false;  // the result is [columns, rows]
  // one rank's part of the source, which others hold parts or copies of; neither transposed nor with heads
  bool of_rank = false;
  /// Not 0: the rows of each `head` rows are dealt out, one of the first half, one of the second, because
  /// llama.cpp turns neighbours of a head by the rotary angle, Megatron and transformers its halves. Not
  /// transposed.
  int64_t head = 0;
  /// For people: "copy", "rows 0 to 63 of 128, transposed".
  std::string how = {};

  int64_t rows() const;  // before the transposition
  int64_t columns() const { return blocks.front().columns; }
  /// Outermost extent of the result, and elements of one step along it.
  int64_t result_rows() const { return transposed ? columns() : rows(); }
  int64_t result_columns() const { return transposed ? rows() : columns(); }
};

/// The element of the source that a rank's part holds at `element` of its own.
int64_t source_element(const Recipe& recipe, int64_t element);

/// The whole of a tensor, row by row.
Recipe copy_recipe(const std::string& source, const MatrixForm& form);

/// Part `part` of renamed.theirs, as it stands in a Hugging Face file; zeros where our model lacks the
/// tensor.
Recipe part_recipe(const RenamedTensor& renamed, size_t part);

/// Fills out with rows [begin, end) of the result, converted to its type. Throws what TensorFile::read
/// throws.
void read_recipe(const TensorFile& file, const Recipe& recipe, int64_t begin, int64_t end, View out);

}  // namespace megalith
