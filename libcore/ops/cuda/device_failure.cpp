#include "libcore/ops/cuda/device_failure.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace megalith::cuda {
namespace {

constexpr std::string_view
    kOldDriver = "the driver is older than this plugin: install a newer one (nvidia-smi shows its version)",
    kNoDriver = "load the driver, or choose --device cpu",
    kUpdated = "the driver was updated under the running kernel: restart the machine",
    kNoFabric = "start the fabric manager (nvidia-fabricmanager), or wait until it is ready",
    kTaken =
        "another process has the device for itself (nvidia-smi): wait for it, or choose another device with "
        "CUDA_VISIBLE_DEVICES",
    kNoCode =
        "this plugin has no code for the device, which needs compute capability 8.0 or later: choose another "
        "device, or --device cpu",
    kNoMemory = "another process may have taken the memory (nvidia-smi): end it, or lower --micro-batch-size",
    kFaulty =
        "the device is faulty: see nvidia-smi -q -d ECC,ROW_REMAPPER and the lines with Xid of dmesg, "
        "reset or replace it, and resume from the newest checkpoint",
    kLost =
        "the driver lost the device: see the lines with Xid of dmesg, reset the device or restart the "
        "machine, and resume from the newest checkpoint",
    kSlow = "the system ended a kernel that ran too long: use a device that drives no display",
    kKernel =
        "a kernel failed, which is a bug in Megalith unless dmesg names Xid 48, 63, 74, 79, 94 or 95 (a "
        "faulty device): report it with the command; the newest checkpoint is whole",
    kCall = "a bug in Megalith: report it with the command",
    kUnknown = "see nvidia-smi and the lines with Xid of dmesg";

struct Row {
  cudaError_t status;
  DeviceFailure failure;
};

constexpr Row kRows[] = {
    {cudaErrorInsufficientDriver, {ErrorKind::kDevice, kOldDriver}},
    {cudaErrorUnsupportedPtxVersion, {ErrorKind::kDevice, kOldDriver}},
    {cudaErrorNoDevice, {ErrorKind::kDevice, kNoDriver}},
    {cudaErrorSystemDriverMismatch, {ErrorKind::kDevice, kUpdated}},
    {cudaErrorSystemNotReady, {ErrorKind::kDevice, kNoFabric}},
    {cudaErrorDevicesUnavailable, {ErrorKind::kDevice, kTaken}},
    {cudaErrorNoKernelImageForDevice, {ErrorKind::kDevice, kNoCode}},
    {cudaErrorMemoryAllocation, {ErrorKind::kDevice, kNoMemory}},
    {cudaErrorECCUncorrectable, {ErrorKind::kDevice, kFaulty}},
    {cudaErrorNvlinkUncorrectable, {ErrorKind::kDevice, kFaulty}},
    {cudaErrorUnknown, {ErrorKind::kDevice, kLost}},
    {cudaErrorLaunchTimeout, {ErrorKind::kDevice, kSlow}},
    {cudaErrorIllegalAddress, {ErrorKind::kInternal, kKernel}},
    {cudaErrorHardwareStackError, {ErrorKind::kInternal, kKernel}},
    {cudaErrorIllegalInstruction, {ErrorKind::kInternal, kKernel}},
    {cudaErrorMisalignedAddress, {ErrorKind::kInternal, kKernel}},
    {cudaErrorInvalidAddressSpace, {ErrorKind::kInternal, kKernel}},
    {cudaErrorInvalidPc, {ErrorKind::kInternal, kKernel}},
    {cudaErrorLaunchFailure, {ErrorKind::kInternal, kKernel}},
    {cudaErrorInvalidValue, {ErrorKind::kInternal, kCall}},
    {cudaErrorInvalidConfiguration, {ErrorKind::kInternal, kCall}},
    {cudaErrorInvalidResourceHandle, {ErrorKind::kInternal, kCall}},
    {cudaErrorLaunchOutOfResources, {ErrorKind::kInternal, kCall}},
};

/// "13.0" of 13000.
std::string version_text(int version) {
  return concat(version / 1000, '.', version % 1000 / 10);
}

}  // namespace

DeviceFailure failure_of(cudaError_t status) {
  const auto* const row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& one) { return one.status == status; });
  return row == std::end(kRows) ? DeviceFailure{ErrorKind::kDevice, kUnknown} : row->failure;
}

void fail_with(cudaError_t status, std::string_view what) {
  const DeviceFailure failure = failure_of(status);
  fail(failure.kind, "cuda: ", what, ": ", cudaGetErrorString(status), " (error ", static_cast<int>(status),
       "); ", failure.remedy);
}

void require_success(cudaError_t status, const char* what) {
  if (status != cudaSuccess) fail_with(status, what);
}

void require_device(int device) {
  int driver = 0, devices = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    fail(ErrorKind::kDevice,
         "cuda: no NVIDIA driver answers on this machine; install one, or choose --device cpu");
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status != cudaSuccess)
    fail_with(status, concat("no device (the driver supports CUDA ", version_text(driver),
                             ", the plugin was built with ", version_text(CUDART_VERSION), ")"));
  if (device < 0 || device >= devices)
    fail(ErrorKind::kDevice, "cuda: no device ", device, "; this machine has ", devices,
         ", numbered from 0; see CUDA_VISIBLE_DEVICES");
}

}  // namespace megalith::cuda
