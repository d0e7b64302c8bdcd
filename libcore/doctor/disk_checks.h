#pragma once

#include <string>

#include "libcore/doctor/finding.h"

namespace megalith {

/// The folder as an absolute path or, if it is not there, the first of those above it that is.
std::string existing_folder(const std::string& folder);

/// The disk that holds folder `save` of --save, or would hold it: free space, how many small writes a second
/// reach the disk, and whether files can be locked. Leaves nothing.
Findings check_disk(const std::string& save);

}  // namespace megalith
