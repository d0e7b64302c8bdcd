#pragma once

#include <string>

#include "libcore/convert/convert_options.h"

namespace megalith {

/// Does what the options say and returns what belongs on stdout (of inspect and --dry-run). The output
/// appears complete or not at all.
std::string run_convert(const ConvertConfig& config);

}  // namespace megalith
