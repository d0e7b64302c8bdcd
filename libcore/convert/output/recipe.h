#pragma once

#include <string>
#include <vector>

#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/checkpoint/views/rows.h"

namespace megalith {

/// Where the elements of a tensor to be written come from. One of our tensors is viewed as a matrix. Blocks
/// of this matrix are put one below the other, and the result may be transposed.
struct Recipe {
  std::string source;                    // our name; empty: the result is zeros
  MatrixForm form;                       // of the whole source
  std::vector<MatrixBlock> blocks = {};  // at least one; all have equal columns
  // how many copies of the blocks' last row follow (Megatron needs a padded vocabulary)
  int64_t repeated = 0;
  bool transposed = false;  // the result is [columns, rows]
  // the result is one rank's part of the source, and other ranks hold other parts or copies; then
  // `transposed` and `head` are not set
  bool of_rank = false;
  /// If not 0, heads are reordered: within each head of `head` rows, the rows of the first half alternate
  /// with those of the second. llama.cpp rotates neighbouring rows of a head, but Megatron and transformers
  /// rotate its halves. `transposed` is then not set.
  int64_t head = 0;
  /// A description for the user: "copy", "rows 0 to 63 of 128, transposed".
  std::string how = {};

  int64_t rows() const;  // of the result before it is transposed
  int64_t columns() const { return blocks.front().columns; }
  /// The outermost extent of the result, and the number of elements in one step along it.
  int64_t result_rows() const { return transposed ? columns() : rows(); }
  int64_t result_columns() const { return transposed ? rows() : columns(); }
};

/// For a rank's part (see of_rank): the index in the source of the part's element `element`.
int64_t source_element(const Recipe& recipe, int64_t element);

/// The recipe that copies a whole tensor.
Recipe copy_recipe(const std::string& source, const MatrixForm& form);

/// The recipe for tensor number `part` of renamed.theirs, as it is in a Hugging Face file. If our model does
/// not have the tensor, the result is zeros.
Recipe part_recipe(const RenamedTensor& renamed, size_t part);

/// Fills `out` with rows [begin, end) of the result, converted to the type of `out`. Throws what
/// TensorFile::read() throws.
void read_recipe(const TensorFile& file, const Recipe& recipe, int64_t begin, int64_t end, View out);

}  // namespace megalith
