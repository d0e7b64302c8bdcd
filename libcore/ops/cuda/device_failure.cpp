#include "libcore/ops/cuda/device_failure.h"

#include <string>

#include "libcore/base/error.h"

namespace megalith::cuda {
namespace {

/// What the user is told after an error of the runtime: its kind, hence the exit code, and what to do.
/// docs/cuda.md has the same table.
struct DeviceFailure {
  ErrorKind kind;
  std::string_view remedy;
};

DeviceFailure failure_of(cudaError_t status) {
  switch (status) {
    case cudaErrorInsufficientDriver:
    case cudaErrorUnsupportedPtxVersion:
      return {ErrorKind::kDevice,
              "the driver is older than this plugin: install a newer one (nvidia-smi shows its version)"};
    case cudaErrorNoDevice:
      return {ErrorKind::kDevice, "load the driver, or choose --device cpu"};
    case cudaErrorSystemDriverMismatch:
      return {ErrorKind::kDevice, "the driver was updated under the running kernel: restart the machine"};
    case cudaErrorSystemNotReady:
      return {ErrorKind::kDevice,
              "start the fabric manager (nvidia-fabricmanager), or wait until it is ready"};
    case cudaErrorDevicesUnavailable:
      return {ErrorKind::kDevice,
              "another process has the device for itself (nvidia-smi): wait for it, or choose another device "
              "with CUDA_VISIBLE_DEVICES"};
    case cudaErrorNoKernelImageForDevice:
      return {ErrorKind::kDevice,
              "this plugin has no code for the device, which needs compute capability 8.0 or later: choose "
              "another device, or --device cpu"};
    case cudaErrorMemoryAllocation:
      return {ErrorKind::kDevice,
              "another process may have taken the memory (nvidia-smi): end it, or lower --micro-batch-size"};
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
      return {ErrorKind::kDevice,
              "the device is faulty: see nvidia-smi -q -d ECC,ROW_REMAPPER and the lines with Xid of dmesg, "
              "reset or replace it, and resume from the newest checkpoint"};
    case cudaErrorUnknown:
      return {ErrorKind::kDevice,
              "the driver lost the device: see the lines with Xid of dmesg, reset the device or restart the "
              "machine, and resume from the newest checkpoint"};
    case cudaErrorLaunchTimeout:
      return {ErrorKind::kDevice,
              "the system ended a kernel that ran too long: use a device that drives no display"};
    case cudaErrorIllegalAddress:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return {
          ErrorKind::kInternal,
          "a kernel failed, which is a bug in Megalith unless dmesg names Xid 48, 63, 74, 79, 94 or 95 (a "
          "faulty device): report it with the command; the newest checkpoint is whole"};
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorIllegalState:
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorCapturedEvent:
      return {ErrorKind::kInternal, "a bug in Megalith: report it with the command"};
    default:
      return {ErrorKind::kDevice, "see nvidia-smi and the lines with Xid of dmesg"};
  }
}

/// "13.0" of 13000.
std::string version_text(int version) {
  return concat(version / 1000, '.', version % 1000 / 10);
}

}  // namespace

void fail_with(cudaError_t status, std::string_view what) {
  const DeviceFailure failure = failure_of(status);
  const std::string message = concat("cuda: ", what, ": ", cudaGetErrorString(status), " (error ",
                                     static_cast<int>(status), "); ", failure.remedy);
  if (status == cudaErrorMemoryAllocation) throw NoMemory(failure.kind, message);
  fail(failure.kind, message);
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
