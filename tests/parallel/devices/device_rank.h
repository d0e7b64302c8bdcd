#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/parallel/devices/device_comm.h"
#include "tests/parallel/device_tensors.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/rank_processes.h"

namespace megalith {

/// A rank with a device. The communicator must be gone before the backend.
struct DeviceRank : DeviceTensors {
  explicit DeviceRank(Communicator& host, const DeviceCommOptions& options = {})
      : DeviceTensors(make_cuda_backend(0)), world(make_device_comm(host, *backend, options)) {}
  std::unique_ptr<Communicator> world;
};

/// Ranks that are processes, each with an emulated device.
class DeviceRanks : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_GLOO(); }
  const test::EmulatedGpus gpus_;
};

inline void expect_fine(int size, const Processes::Body& body) {
  for (const RankEnd& end : Processes(size).run(body)) EXPECT_TRUE(end.is_exit(0)) << end.status << end.error;
}
inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace megalith
