#pragma once

#include <string>
#include <utility>

#include <nccl.h>

#include "libcore/ops/backend/device_group.h"
#include "libcore/ops/cuda/nccl/nccl_library.h"

namespace megalith::cuda {

/// A handle of NCCL, which its owner starts and ends, with its state and its errors.
class NcclComm {
 public:
  /// `watch`, which must outlive it, waits for NCCL.
  explicit NcclComm(DeviceWatch& watch) : watch_(watch) {}

  /// Whether NCCL has given a handle that was not taken.
  explicit operator bool() const { return comm_ != nullptr; }
  ncclComm_t get() const { return comm_; }
  ncclComm_t take() { return std::exchange(comm_, nullptr); }
  /// Where NCCL is to put the handle.
  ncclComm_t* place() { return &comm_; }

  /// Throws kComm with NCCL's words unless the call was done or taken up. `what`: what was asked of NCCL.
  void check(ncclResult_t result, const char* what) const;
  /// Waits until NCCL has taken up what the host asked of the communicator.
  void await(const char* what) const;
  /// What has gone wrong in the background, in NCCL's words; empty if nothing has.
  std::string problem() const;

 private:
  ncclResult_t state() const;
  std::string words(ncclResult_t result) const;

  DeviceWatch& watch_;
  const NcclLibrary& library_ = nccl();
  ncclComm_t comm_ = nullptr;
};

}  // namespace megalith::cuda
