#pragma once

#include <filesystem>

namespace megalith {

/// The folder for temporary files: that of the first variable that is set among $TMPDIR, $TMP, $TEMP and
/// $TEMPDIR, or else /tmp. Throws kUsage, with the variable and the path, if nothing can be made there; kIo
/// if the disk is full.
std::filesystem::path temporary_folder();

}  // namespace megalith
