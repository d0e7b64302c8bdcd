#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "libcore/ops/cuda/cudnn/cudnn_library.h"

namespace megalith::cuda::cudnn {

/// A descriptor of cuDNN's, which its owner frees. Functions throw kDevice with cuDNN's words.
class Descriptor {
 public:
  Descriptor(const Library&, DescriptorType);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  RawDescriptor raw() const { return raw_; }
  template <class T>
  void set(Attribute attribute, AttributeType type, std::span<const T> values) {
    set(attribute, type, static_cast<int64_t>(values.size()), values.data());
  }
  template <class T>
  void set(Attribute attribute, AttributeType type, const T& value) {
    set(attribute, type, 1, &value);
  }
  void set(Attribute attribute, const Descriptor& other) { set(attribute, kOfDescriptor, other.raw_); }
  /// Returns raw(), to which other descriptors can refer from then on.
  RawDescriptor finalize();
  /// Whether cuDNN finalizes it.
  bool try_finalize();

 private:
  void set(Attribute, AttributeType, int64_t count, const void* values);

  const Library& library_;
  RawDescriptor raw_ = nullptr;
};

/// Four sizes or strides: [batch, head, row, column].
using Four = std::array<int64_t, 4>;

/// A tensor of a graph.
struct TensorForm {
  Four sizes, strides;  // in elements
  DataType type;
};

/// A graph of operations, and the plan by which cuDNN runs it. Tensors with an id are in memory, those
/// without exist within a kernel only.
class Graph {
 public:
  Graph(const Library&, Handle);

  /// A tensor in device memory, or one number that the host gives (`by_value`).
  RawDescriptor tensor(int64_t id, const TensorForm&, bool by_value = false);
  /// Each of these adds an operation and returns its result, which has the given form and no memory.
  RawDescriptor pointwise(PointwiseMode, std::initializer_list<RawDescriptor> operands, const TensorForm&);
  /// The number of each element's place along an axis.
  RawDescriptor index(RawDescriptor like, int64_t axis, TensorForm);
  RawDescriptor reduce(ReductionMode, RawDescriptor x, const TensorForm&);
  RawDescriptor multiply(RawDescriptor a, RawDescriptor b, const TensorForm&);
  /// The same elements by other strides.
  RawDescriptor reshape(RawDescriptor x, const TensorForm&);
  // The same operations with a result in memory.
  void pointwise_to(RawDescriptor y, PointwiseMode, std::initializer_list<RawDescriptor> operands,
                    DataType precision = kFloat);
  void reduce_to(RawDescriptor y, ReductionMode, RawDescriptor x);
  void multiply_to(RawDescriptor c, RawDescriptor a, RawDescriptor b);

  /// Takes the first plan that cuDNN proposes for the device of the handle, that gives equal bits in every
  /// run, and whose scratch memory is at most this. Throws kDevice if there is none.
  void plan(size_t most_workspace);
  /// Enqueues the plan on the handle's stream. `pointers`: of the tensors with ids, in the order of `ids`; of
  /// those by value in the host's memory.
  void run(std::span<const int64_t> ids, std::span<void* const> pointers, void* workspace) const;

 private:
  /// An attribute of an operation, and the descriptor to which it refers.
  using Part = std::pair<Attribute, RawDescriptor>;

  Descriptor& add(DescriptorType);
  void add_operation(DescriptorType, const std::vector<Part>&);
  RawDescriptor make_tensor(int64_t id, const TensorForm&, bool is_virtual, bool by_value);
  RawDescriptor result(const TensorForm& form) { return make_tensor(next_id_++, form, true, false); }
  void add_pointwise(RawDescriptor y, Descriptor& mode, std::initializer_list<RawDescriptor> operands);
  std::vector<Descriptor> proposals();
  bool is_deterministic(const Descriptor& config) const;

  const Library& library_;
  Handle handle_;
  std::deque<Descriptor> parts_;  // what the plan refers to
  std::vector<RawDescriptor> operations_;
  int64_t next_id_ = 1000;  // of tensors without memory
  RawDescriptor plan_ = nullptr;
};

}  // namespace megalith::cuda::cudnn
