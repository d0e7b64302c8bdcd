#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/io/files/file.h"

namespace megalith {

/// The absolute path of a file or folder, with links followed and without a slash at its end. The file need
/// not exist. If the path cannot be resolved, returns `path`.
std::string real_path(const std::string& path);

/// The files that a run will read and write, with the options that name them. check() ensures that no output
/// destroys an input or another output, or replaces something that is not a file. Links are followed, and two
/// names of one file count as one file.
class RunFiles {
 public:
  /// Adds inputs: each a file, or a folder whose direct members are all read. A path that does not exist
  /// conflicts with nothing.
  void reads(std::string_view option, const std::string& path);
  void reads(std::string_view option, const std::vector<std::string>& paths);
  /// Adds the inputs PREFIX.bin and PREFIX.idx, and PREFIX.json if it is a sidecar of the dataset.
  void reads_dataset(std::string_view option, const std::string& prefix);
  /// Protects files in a folder, which need not exist: no output may have one of `names` there or lie below
  /// one; a "*" in a name stands for any text, and may occur once. Nor may the folder itself be an output.
  /// Other files in the folder may be outputs.
  void keeps(std::string_view option, const std::string& folder, std::span<const std::string_view> names);

  void writes(std::string_view option, const std::string& path, OutputKind kind = OutputKind::kFile);
  void writes_dataset(std::string_view option, const std::string& prefix);
  /// Adds an output: a folder that is replaced as a whole.
  void replaces_folder(std::string_view option, const std::string& path);

  /// Throws kUsage, naming every output that is also an input or another output, or whose path names
  /// something that cannot be written.
  void check() const;

 private:
  struct Named {
    std::string option, path, real;  // real: real_path(path)
    OutputKind kind = OutputKind::kFile;
    bool folder = false;
  };
  struct Kept {
    std::string option, path, real;
    std::vector<std::string> names;
    bool holds(const std::string& real_output) const;
  };
  static std::string refusal(const Named& output);
  static bool coincide(const Named& output, const Named& other);

  std::vector<Named> inputs_, outputs_;
  std::vector<Kept> kept_;
};

}  // namespace megalith
