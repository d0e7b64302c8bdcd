#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/communicator.h"

namespace megalith {

/// Elements of one dtype in host memory, read and written as doubles.
class Tensor {
 public:
  Tensor(DType dtype, int64_t elements)
      : dtype_(dtype), elements_(elements), bytes_(static_cast<size_t>(elements) * size_of(dtype)) {}

  View view() { return {bytes_.data(), dtype_, {elements_}}; }
  View part(int i, int parts) {
    const int64_t n = elements_ / parts;
    return view().rows(i * n, (i + 1) * n);
  }
  void set(int64_t i, double value);
  double get(int64_t i) const;
  std::vector<double> all() const {
    std::vector<double> values;
    for (int64_t i = 0; i < elements_; ++i) values.push_back(get(i));
    return values;
  }
  bool operator==(const Tensor&) const = default;

 private:
  template <class T>
  T read(int64_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    return value;
  }
  template <class T>
  void write(int64_t i, T value) {
    std::memcpy(bytes_.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
  }

  DType dtype_;
  int64_t elements_;
  std::vector<std::byte> bytes_;
};

inline constexpr DType kReduced[] = {DType::kF32, DType::kBf16, DType::kF16,
                                     DType::kF64, DType::kI32,  DType::kI64};

/// Element i of rank `rank`: an arbitrary number of the type, the same in every run.
double element(DType dtype, int rank, int64_t i);
Tensor tensor_of(DType dtype, int rank, int64_t elements);
std::vector<Tensor> tensors_of(DType dtype, int ranks, int64_t elements);

/// The reduction of `tensors`, element by element: 16-bit types are added in fp32, in rank order.
Tensor reduced(std::vector<Tensor>& tensors, DType dtype, Reduce reduce);

/// A rank's own backend, and a stream of each kind.
struct Rank {
  std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream compute = backend->make_stream(), queue = backend->make_queue_stream();
};

}  // namespace megalith
