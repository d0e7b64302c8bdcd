#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace megalith::emulator {

/// A tensor of a graph of cuDNN: [batch, head, row, column].
struct GraphTensor {
  int64_t id = 0;
  int type = 0;  // of cuDNN: 0 fp32, 2 fp16, 4 int32, 9 bf16, 11 boolean
  std::array<int64_t, 4> sizes = {}, strides = {};
  bool is_virtual = false, is_by_value = false;

  int64_t elements() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }
  /// One more than the place of the last element.
  int64_t extent() const;
  size_t element_bytes() const;
  template <class Visit>
  void each(const Visit& visit) const {
    std::array<int64_t, 4> i{};
    for (i[0] = 0; i[0] < sizes[0]; ++i[0])
      for (i[1] = 0; i[1] < sizes[1]; ++i[1])
        for (i[2] = 0; i[2] < sizes[2]; ++i[2])
          for (i[3] = 0; i[3] < sizes[3]; ++i[3]) visit(i);
  }
  int64_t place(const std::array<int64_t, 4>& i) const {
    return i[0] * strides[0] + i[1] * strides[1] + i[2] * strides[2] + i[3] * strides[3];
  }
};

struct GraphOperation {
  enum Kind { kPointwise, kMultiply, kReduce, kReshape } kind;
  int mode = 0;  // of cuDNN, of kPointwise and kReduce
  int64_t axis = 0;
  std::vector<GraphTensor> in;
  GraphTensor out;
};

/// What a graph computes, element by element from what its descriptors say, so that a wrong one shows: each
/// tensor is rounded to its type, and read and written by its strides. `memory`: of tensors in memory, by id.
/// `without_mask`: as a library would that forgets the causal mask.
void compute_graph(const std::vector<GraphOperation>&, const std::map<int64_t, void*>& memory,
                   bool without_mask);

}  // namespace megalith::emulator
