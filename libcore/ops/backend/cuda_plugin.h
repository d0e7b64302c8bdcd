#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/ops/backend/backend.h"

namespace megalith {

/// The CUDA backend for one device, numbered as the CUDA runtime does (after CUDA_VISIBLE_DEVICES). It lives
/// in libmegalith_cuda.so, which is loaded on the first call and stays: this library and the programs know
/// nothing of CUDA and start on machines without it. Throws kDevice when the plugin, a library that it needs,
/// a driver or the device is missing; the message says where was looked.
std::unique_ptr<Backend> make_cuda_backend(int device);

/// Where the plugin and the libraries that it needs are looked for, in this order: the folders of
/// $MEGALITH_CUDA_LIBS, the folder of this library, lib/ beside the program's folder, LD_LIBRARY_PATH,
/// /usr/local/cuda/lib64, and nvidia/*/lib of the Python environments on PATH. Existing folders only, each
/// once.
std::vector<std::string> cuda_library_folders();

/// What --device says: "cpu"; "cuda": the first device; "gpu": that, or the CPU where none answers, which is
/// logged. kUsage for any other word.
std::unique_ptr<Backend> make_backend(std::string_view device);

}  // namespace megalith
