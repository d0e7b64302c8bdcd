#pragma once

#include <deque>

#include "libcore/ops/backend/backend.h"
#include "tests/parallel/tensors.h"

namespace megalith {

/// Copies of tensors in the memory of a rank's device.
class DeviceTensors {
 public:
  explicit DeviceTensors(std::unique_ptr<Backend> made) : backend(std::move(made)) {}

  View put(Tensor tensor) {
    const View host = tensor.view();
    memory_.push_back(backend->allocate(host.bytes()));
    const View device{memory_.back().data.get(), host.dtype, host.shape};
    compute.from_host(device, host.data);
    return device;
  }
  View zeros(DType dtype, int64_t elements) { return put(Tensor(dtype, elements)); }
  Tensor get(const View& device) {
    Tensor tensor(device.dtype, device.elements());
    compute.to_host(tensor.view().data, device);
    return tensor;
  }

  std::unique_ptr<Backend> backend;
  Stream compute = backend->make_stream();

 private:
  std::deque<Memory> memory_;
};

}  // namespace megalith
