#pragma once

#include <string>
#include <vector>

#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/checkpoint/views/rows.h"

namespace megalith {

/// Where the elements of a tensor to be written come from. One of our tensors is taken as a matrix; blocks of
/// it are put one below the other, and the result may be transposed.
struct Recipe {
  std::string source;                    // our name; empty: zeros
  MatrixForm form;                       // of the whole source
  std::vector<MatrixBlock> blocks = {};  // at least one; all have the same columns
  // how many rows follow, each equal to the last row of the blocks (Megatron needs a padded vocabulary)
  int64_t repeated = 0;
  bool transposed = false;  // the result is [columns, rows]
  // the result is one rank's part of the source; other ranks hold other parts or copies. `transposed` and
  // `head` are not set then
  bool of_rank = false;
  /// Not 0: within each head of `head` rows, those of the first half alternate with those of the second.
  /// llama.cpp rotates neighbouring rows of a head; Megatron and transformers rotate its halves. `transposed`
  /// is not set then.
  int64_t head = 0;
  /// A description for the user: "copy", "rows 0 to 63 of 128, transposed".
  std::string how = {};

  int64_t rows() const;  // before the transposition
  int64_t columns() const { return blocks.front().columns; }
  /// The outermost extent of the result, and the elements in one step along it.
  int64_t result_rows() const { return transposed ? columns() : rows(); }
  int64_t result_columns() const { return transposed ? rows() : columns(); }
};

/// The index in the source of element `element` of a rank's part (see of_rank).
int64_t source_element(const Recipe& recipe, int64_t element);

/// The recipe that copies a whole tensor.
Recipe copy_recipe(const std::string& source, const MatrixForm& form);

/// The recipe for part `part` of renamed.theirs, as it is in a Hugging Face file; zeros if our model does not
/// have the tensor.
Recipe part_recipe(const RenamedTensor& renamed, size_t part);

/// Fills `out` with rows [begin, end) of the result, converted to its type. Throws what TensorFile::read
/// throws.
void read_recipe(const TensorFile& file, const Recipe& recipe, int64_t begin, int64_t end, View out);

}  // namespace megalith
