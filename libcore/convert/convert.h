#pragma once

#include <string>

#include "libcore/convert/convert_options.h"

namespace megalith {

/// Does what the options say and returns the text for stdout (of inspect and --dry-run). The output appears
/// completely or not at all, so a run that is stopped leaves no partial output.
std::string run_convert(const ConvertConfig& config);

}  // namespace megalith
