#pragma once

#include <memory>
#include <string>

#include "libcore/ops/backend/backend.h"
#include "tests/emulator/controls.h"
#include "tests/support/environment.h"

namespace megalith::test {

/// The folder of the CUDA plugin that runs its kernels on the host (tests/emulator): a value of
/// MEGALITH_CUDA_LIBS.
std::string emulated_cuda_folder();

/// Lets programs load that plugin, whose cuBLASLt suggests one algorithm for each product, so that no run
/// times several. Tests of the choice set MEGALITH_EMULATOR_ALGORITHMS themselves.
class EmulatedPlugin {
  Variable folders_{"MEGALITH_CUDA_LIBS", emulated_cuda_folder()};
  Variable algorithms_{"MEGALITH_EMULATOR_ALGORITHMS", "1"};
};

/// The backend of the emulated device, loaded into this process.
std::unique_ptr<Backend> make_emulated_backend(int device = 0);
/// The controls of that device.
emulator::Controls& emulated_controls();

/// During its lifetime, programs and processes that the test starts find so many emulated devices, whose work
/// runs in this order.
class EmulatedGpus {
 public:
  explicit EmulatedGpus(int order = 1, int devices = 8)
      : order_("MEGALITH_EMULATOR_ORDER", std::to_string(order)),
        devices_("MEGALITH_EMULATOR_DEVICES", std::to_string(devices)) {}

 private:
  EmulatedPlugin plugin_;
  Variable order_, devices_;
};
/// The same for this process.
class OwnEmulatedGpus {
 public:
  explicit OwnEmulatedGpus(unsigned order = 1, int devices = 1) {
    emulated_controls().order = order;
    emulated_controls().devices = devices;
  }
  ~OwnEmulatedGpus() { emulated_controls().order = emulated_controls().devices = 1; }
  OwnEmulatedGpus(const OwnEmulatedGpus&) = delete;
  OwnEmulatedGpus& operator=(const OwnEmulatedGpus&) = delete;

 private:
  const Variable folder_{"MEGALITH_CUDA_LIBS", emulated_cuda_folder()};
};

/// Whether this build has a second such device, whose kernels are compiled so that it counts the memory that
/// they ask for (CallCounts::sectors). Builds with a sanitizer have none, nor do those by clang, which cuts
/// accesses into other pieces.
bool has_counting_device();
/// The backend and the controls of that device.
std::unique_ptr<Backend> make_counting_backend();
emulator::Controls& counting_controls();

}  // namespace megalith::test
