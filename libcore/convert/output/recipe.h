#pragma once

#include <string>
#include <vector>

#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/checkpoint/views/rows.h"

namespace megalith {

/// Where the elements of a tensor to be written come from: blocks of one of our tensors taken as a matrix,
/// one below the other, and perhaps transposed at the end.
struct Recipe {
  std::string source;                    // our name; empty: zeros
  MatrixForm form;                       // of the whole source
  std::vector<MatrixBlock> blocks = {};  // at least one; all with the same columns
  // more rows at the end, each equal to the last one of the blocks (a padded vocabulary, as Megatron needs
  // it)
  int64_t repeated = 0;
  bool transposed = false;  // the result is [columns, rows]
  // one rank's part of the source, of which other ranks hold parts or copies; neither transposed nor with
  // heads
  bool of_rank = false;
  /// Not 0: among each `head` rows, rows of the first half alternate with rows of the second, since llama.cpp
  /// rotates neighbours in a head, while Megatron and transformers rotate its halves. Not transposed.
  int64_t head = 0;
  /// For people: "copy", "rows 0 to 63 of 128, transposed".
  std::string how = {};

  int64_t rows() const;  // before the transposition
  int64_t columns() const { return blocks.front().columns; }
  /// The outermost extent of the result, and the elements in one step along it.
  int64_t result_rows() const { return transposed ? columns() : rows(); }
  int64_t result_columns() const { return transposed ? rows() : columns(); }
};

/// The element of the source that is element `element` of a rank's part.
int64_t source_element(const Recipe& recipe, int64_t element);

/// A whole tensor, row by row.
Recipe copy_recipe(const std::string& source, const MatrixForm& form);

/// Part `part` of renamed.theirs, as it is in a Hugging Face file; zeros if our model does not have the
/// tensor.
Recipe part_recipe(const RenamedTensor& renamed, size_t part);

/// Fills `out` with rows [begin, end) of the result, converted to its type. Throws what TensorFile::read
/// throws.
void read_recipe(const TensorFile& file, const Recipe& recipe, int64_t begin, int64_t end, View out);

}  // namespace megalith
