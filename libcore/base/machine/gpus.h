#pragma once

#include <string>
#include <vector>

namespace megalith {

/// Names of this machine's NVIDIA GPUs, as the driver's folder lists them ("NVIDIA H100 80GB HBM3"); empty if
/// there is no driver. Reads small text files and opens no device. `folder` holds a folder for each GPU
/// with a file "information" (NVIDIA's driver README, "The /proc interface").
std::vector<std::string> nvidia_gpus(const std::string& folder = "/proc/driver/nvidia/gpus");

}  // namespace megalith
