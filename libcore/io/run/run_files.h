#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/io/files/file.h"

namespace megalith {

/// The absolute path, links followed, also of a file that does not exist yet, without a slash at its end;
/// `path` if the system does not tell.
std::string real_path(const std::string& path);

/// The files that a run will read and write, with the options that name them, so that no output destroys an
/// input or another output, or replaces something that is not a file. Links are followed; two names of one
/// file are one.
class RunFiles {
 public:
  /// A file, or a folder of which all direct members are read. One that does not exist conflicts with
  /// nothing.
  void reads(std::string_view option, const std::string& path);
  void reads(std::string_view option, const std::vector<std::string>& paths);
  /// PREFIX.bin and .idx, and .json if it is the name of their sidecar.
  void reads_dataset(std::string_view option, const std::string& prefix);
  /// A folder, existing or not, in which only these names belong to the run, with everything in them; one "*"
  /// in a name stands for any text. The folder itself cannot be an output either.
  void keeps(std::string_view option, const std::string& folder, std::span<const std::string_view> names);

  void writes(std::string_view option, const std::string& path, OutputKind kind = OutputKind::kFile);
  void writes_dataset(std::string_view option, const std::string& prefix);
  /// A folder that is replaced as a whole.
  void replaces_folder(std::string_view option, const std::string& path);

  /// Throws kUsage with every output that is an input, another output, or of a kind that cannot be written.
  void check() const;

 private:
  struct Named {
    std::string option, path, real;  // real: links followed, also if it does not exist yet
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
