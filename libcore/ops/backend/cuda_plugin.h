#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/ops/backend/backend.h"
#include "libcore/ops/backend/device_facts.h"
#include "libcore/ops/backend/device_memory.h"

namespace megalith {

class DeviceWatch;
class Plugin;

/// The CUDA backend for one device, numbered as in the CUDA runtime (after CUDA_VISIBLE_DEVICES). It is in
/// libmegalith_cuda.so, which is loaded on the first call and stays loaded: this library and the programs do
/// not depend on CUDA and start on machines without it. Throws kDevice if the plugin, a library that it
/// needs, a driver or the device is missing; the message lists the folders that were searched.
std::unique_ptr<Backend> make_cuda_backend(int device);

/// The folders in which the plugin and the libraries that it needs are searched, in this order: the folders
/// of $MEGALITH_CUDA_LIBS, the folder of this library, lib/ next to the program's folder, LD_LIBRARY_PATH,
/// nvidia/*/lib of the Python environment that the program is installed in, whose wheel asked for them,
/// /usr/local/cuda/lib64, and nvidia/*/lib of the environments on PATH. Only existing folders, each once.
std::vector<std::string> cuda_library_folders();
/// The path of the file `name` in the first of these folders that has it; `name` alone if none has, which the
/// dynamic linker then finds or does not.
std::string cuda_library_path(const std::string& name);

/// libmegalith_cuda.so itself. Throws as make_cuda_backend() does.
Plugin cuda_plugin();

/// The backend for --device: "cpu"; "cuda": the first CUDA device; "gpu": the first CUDA device or, if there
/// is none, the CPU, with a log message. Throws kUsage for any other value.
std::unique_ptr<Backend> make_backend(std::string_view device);

/// --device with "gpu" resolved to "cuda" or "cpu", as make_backend() would choose. Rules about devices must
/// be checked on this name.
std::string resolved_device(const std::string& device);

/// The memory of a device. Takes some of it for this process, unless it has. Throws kDevice.
cuda::DeviceMemory cuda_memory(int device);
/// The same of the device of a backend that make_cuda_backend() made.
cuda::DeviceMemory cuda_memory(const Backend&);
/// What is known of the device. Throws kDevice as make_cuda_backend() does.
cuda::DeviceFacts cuda_facts(int device);
/// The number of CUDA devices that this process sees. Throws kDevice if there is no driver or no device.
int cuda_devices();
/// The device's address on its machine, which processes with other numbers for it share: "0000:1b:00.0".
/// Throws kDevice.
std::string cuda_device_address(int device);

/// From now on the host waits for the streams of a backend that make_cuda_backend() made through `watch`,
/// which must live until another one is set; null: it waits for them as long as they take. Throws kDevice,
/// and only when first called.
void set_device_watch(Backend&, DeviceWatch* watch);

}  // namespace megalith
