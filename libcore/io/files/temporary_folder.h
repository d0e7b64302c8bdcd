#pragma once

#include <filesystem>

namespace megalith {

/// The folder for temporary files: $TMPDIR, else $TMP, $TEMP or $TEMPDIR, else /tmp. kUsage, with the
/// variable and the path, if the path is not a folder.
std::filesystem::path temporary_folder();

}  // namespace megalith
