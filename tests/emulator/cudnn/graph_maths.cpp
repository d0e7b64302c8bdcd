#include "tests/emulator/cudnn/graph_maths.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "libcore/ops/cuda/element_maths.h"
#include "tests/emulator/report.h"

namespace megalith::emulator {
namespace {

enum Type { kFloat = 0, kHalf = 2, kInt32 = 4, kBfloat16 = 9, kBoolean = 11 };
enum Mode {
  kAdd = 0,
  kMul = 1,
  kDiv = 6,
  kSub = 9,
  kExp = 13,
  kLog = 15,
  kGe = 303,
  kIndex = 501,
  kSelect = 601
};
enum Reduction { kSumOf = 0, kMaxOf = 3 };

using Index = std::array<int64_t, 4>;

float rounded(int type, float value) {
  switch (type) {
    case kHalf:
      return cuda::widen(cuda::narrow<cuda::Half>(value));
    case kBfloat16:
      return cuda::widen(cuda::narrow<cuda::Bf16>(value));
    default:
      return value;
  }
}

/// A tensor's elements as they lie by its strides.
using Elements = std::vector<float>;

/// The index of the element that an operand has for element `i` of the result: 0 along axes of one.
Index spread(const GraphTensor& of, Index i) {
  for (size_t axis = 0; axis < i.size(); ++axis)
    if (of.sizes[axis] == 1) i[axis] = 0;
  return i;
}

class Computation {
 public:
  Computation(const std::map<int64_t, void*>& memory, bool without_mask)
      : memory_(memory), without_mask_(without_mask) {}

  void run(const GraphOperation& operation) {
    for (const GraphTensor& tensor : operation.in) load(tensor);
    Elements& out = values_[operation.out.id];
    out.assign(static_cast<size_t>(operation.out.extent()), std::numeric_limits<float>::quiet_NaN());
    operation.out.each([&](const Index& i) {
      out[static_cast<size_t>(operation.out.place(i))] = rounded(operation.out.type, element(operation, i));
    });
    if (!operation.out.is_virtual) store(operation.out);
  }
  bool has(const GraphTensor& tensor) const { return !tensor.is_virtual || values_.count(tensor.id) > 0; }

 private:
  float at(const GraphTensor& tensor, const Index& i) const {
    return values_.at(tensor.id)[static_cast<size_t>(tensor.place(spread(tensor, i)))];
  }
  float element(const GraphOperation& operation, const Index& i) const {
    switch (operation.kind) {
      case GraphOperation::kPointwise:
        return pointwise(operation, i);
      case GraphOperation::kMultiply:
        return product(operation, i);
      case GraphOperation::kReduce:
        return reduction(operation, i);
      case GraphOperation::kReshape:  // the same memory by other strides
        return values_.at(operation.in[0].id)[static_cast<size_t>(operation.out.place(i))];
    }
    return 0;
  }
  float pointwise(const GraphOperation& operation, const Index& i) const {
    const auto in = [&](size_t k) { return at(operation.in[k], i); };
    switch (operation.mode) {
      case kAdd:
        return in(0) + in(1);
      case kMul:
        return in(0) * in(1);
      case kDiv:
        return in(0) / in(1);
      case kSub:
        return in(0) - in(1);
      case kExp:
        return std::exp(in(0));
      case kLog:
        return std::log(in(0));
      case kGe:
        return in(0) >= in(1) ? 1 : 0;
      case kIndex:
        return static_cast<float>(i[static_cast<size_t>(operation.axis)]);
      case kSelect:
        return without_mask_ || in(2) != 0 ? in(0) : in(1);
      default:
        end_with("cudnn: the emulator has no pointwise operation " + std::to_string(operation.mode));
    }
  }
  float product(const GraphOperation& operation, const Index& i) const {
    const GraphTensor &a = operation.in[0], &b = operation.in[1];
    double sum = 0;
    for (int64_t k = 0; k < a.sizes[3]; ++k)
      sum += static_cast<double>(at(a, {i[0], i[1], i[2], k})) *
             static_cast<double>(at(b, {i[0], i[1], k, i[3]}));
    return static_cast<float>(sum);
  }
  /// Along the axes on which the result has one element and `x` more.
  float reduction(const GraphOperation& operation, const Index& i) const {
    const GraphTensor& x = operation.in[0];
    Index first = i, last = i;
    for (size_t axis = 0; axis < i.size(); ++axis)
      if (operation.out.sizes[axis] == 1) first[axis] = 0, last[axis] = x.sizes[axis] - 1;
    double sum = 0, most = -std::numeric_limits<double>::infinity();
    Index j = first;
    for (j[0] = first[0]; j[0] <= last[0]; ++j[0])
      for (j[1] = first[1]; j[1] <= last[1]; ++j[1])
        for (j[2] = first[2]; j[2] <= last[2]; ++j[2])
          for (j[3] = first[3]; j[3] <= last[3]; ++j[3]) {
            const auto value = static_cast<double>(at(x, j));
            sum += value;
            most = std::max(most, value);
          }
    return static_cast<float>(operation.mode == kMaxOf ? most : sum);
  }

  const std::byte* memory_of(const GraphTensor& tensor) const {
    const auto found = memory_.find(tensor.id);
    if (found == memory_.end()) end_with("cudnn: no pointer for tensor " + std::to_string(tensor.id));
    return static_cast<const std::byte*>(found->second);
  }
  void load(const GraphTensor& tensor) {
    if (tensor.is_virtual) return;
    Elements& elements = values_[tensor.id];
    elements.assign(static_cast<size_t>(tensor.extent()), std::numeric_limits<float>::quiet_NaN());
    const std::byte* const memory = memory_of(tensor);
    tensor.each([&](const Index& i) {
      const auto place = static_cast<size_t>(tensor.place(i));
      if (tensor.type == kFloat)
        elements[place] = reinterpret_cast<const float*>(memory)[place];
      else if (tensor.type == kHalf)
        elements[place] = cuda::widen(cuda::Half{reinterpret_cast<const uint16_t*>(memory)[place]});
      else
        elements[place] = cuda::widen(cuda::Bf16{reinterpret_cast<const uint16_t*>(memory)[place]});
    });
  }
  void store(const GraphTensor& tensor) {
    const Elements& elements = values_.at(tensor.id);
    auto* const memory = const_cast<std::byte*>(memory_of(tensor));
    tensor.each([&](const Index& i) {
      const auto place = static_cast<size_t>(tensor.place(i));
      if (tensor.type == kFloat)
        reinterpret_cast<float*>(memory)[place] = elements[place];
      else
        reinterpret_cast<uint16_t*>(memory)[place] = tensor.type == kHalf
                                                         ? cuda::narrow<cuda::Half>(elements[place]).bits
                                                         : cuda::narrow<cuda::Bf16>(elements[place]).bits;
    });
  }

  const std::map<int64_t, void*>& memory_;
  const bool without_mask_;
  std::map<int64_t, Elements> values_;
};

}  // namespace

int64_t GraphTensor::extent() const {
  return place({sizes[0] - 1, sizes[1] - 1, sizes[2] - 1, sizes[3] - 1}) + 1;
}

size_t GraphTensor::element_bytes() const {
  return type == kHalf || type == kBfloat16 ? sizeof(uint16_t) : sizeof(float);
}

void compute_graph(const std::vector<GraphOperation>& operations, const std::map<int64_t, void*>& memory,
                   bool without_mask) {
  Computation computation(memory, without_mask);
  for (const GraphOperation& operation : operations) {
    for (const GraphTensor& tensor : operation.in)
      if (!computation.has(tensor)) end_with("cudnn: an operation comes before one whose result it takes");
    computation.run(operation);
  }
}

}  // namespace megalith::emulator
