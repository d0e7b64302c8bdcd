#pragma once

#include <filesystem>
#include <string>

namespace megalith {

/// The folder for temporary files: that of the first variable that is set among $TMPDIR, $TMP, $TEMP and
/// $TEMPDIR, or else /tmp. Throws kUsage, with the variable and the path, if nothing can be made there; kIo
/// if the disk is full.
std::filesystem::path temporary_folder();

/// A new folder in temporary_folder(), which no other user may read. The destructor removes it with all that
/// is in it; only a kill leaves it.
class OwnFolder {
 public:
  /// Throws kIo if it cannot be made, and what temporary_folder() throws.
  OwnFolder();
  ~OwnFolder();
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace megalith
