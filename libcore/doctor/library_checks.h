#pragma once

#include "libcore/doctor/finding.h"

namespace megalith {

/// Opens each plugin that every installation has (base/plugins/plugin.h): a finding for each.
Findings check_plugins();

/// The NVIDIA devices and their driver and, if one answers, the CUDA plugin. Without a device and without the
/// CUDA plugin that is no fault.
Findings check_gpu();

}  // namespace megalith
