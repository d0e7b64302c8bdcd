#pragma once

#include <string>

#include "libcore/convert/convert_options.h"

namespace megalith {

/// Does what the options say. Returns the text that inspect and --dry-run print to stdout, otherwise an empty
/// text. The output appears completely or not at all, so a run that is stopped leaves no partial output.
std::string run_convert(const ConvertConfig& config);

}  // namespace megalith
