#pragma once

#include <filesystem>

namespace megalith {

/// The folder for temporary files: that of the first variable that is set among $TMPDIR, $TMP, $TEMP and
/// $TEMPDIR, or else /tmp. Throws kUsage, with the variable and the path, if the path is not a folder.
std::filesystem::path temporary_folder();

}  // namespace megalith
