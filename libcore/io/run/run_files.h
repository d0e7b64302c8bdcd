#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "libcore/io/files/file.h"

namespace megalith {

/// The absolute path of a file or folder, without links and without a slash at its end. The file need not
/// exist. Returns `path` unchanged if it cannot be resolved.
std::string real_path(const std::string& path);

/// The files that a run will read and write, and the options that name them. check() ensures that no output
/// destroys an input or another output, or replaces anything but a file. Links are followed; two names of one
/// file count as one file.
class RunFiles {
 public:
  /// Adds inputs. Each is a file, or a folder of which all direct members are read. A path that does not
  /// exist conflicts with nothing.
  void reads(std::string_view option, const std::string& path);
  void reads(std::string_view option, const std::vector<std::string>& paths);
  /// Adds the inputs PREFIX.bin and PREFIX.idx, and PREFIX.json if it is a sidecar of the dataset.
  void reads_dataset(std::string_view option, const std::string& prefix);
  /// Protects files in a folder, which need not exist. No output may be one of the files `names` in it or lie
  /// below one; a name may contain one "*", which stands for any text. The folder itself may not be an output
  /// either. Other files in the folder may be outputs.
  void keeps(std::string_view option, const std::string& folder, std::span<const std::string_view> names);

  void writes(std::string_view option, const std::string& path, OutputKind kind = OutputKind::kFile);
  void writes_dataset(std::string_view option, const std::string& prefix);
  /// Adds an output: a folder that is replaced as a whole.
  void replaces_folder(std::string_view option, const std::string& path);

  /// Adds an output: a folder, which need not exist, in which files appear beside what it holds. It may be an
  /// input, or lie in one, but not in a file or folder that keeps() protects.
  void fills_folder(std::string_view option, const std::string& path);

  /// The device and inode of each output that exists. An input of which these are known and not among them is
  /// no output, and need not be added.
  std::set<std::pair<dev_t, ino_t>> written_files() const;

  /// Throws kUsage if an output is also an input or another output, if it lies in the folder of a checkpoint
  /// (iter_NNNNNNN, ours or Megatron-LM's), read or not, or if its path names something that cannot be
  /// written. The message names all these outputs.
  void check() const;

 private:
  struct Named {
    std::string option, path, real;  // `real` is real_path(path)
    OutputKind kind = OutputKind::kFile;
    bool folder = false;
    std::optional<std::pair<dev_t, ino_t>> file = {};  // what is there; of an output set by check()
    bool device = false;                               // the same
  };
  struct Kept {
    std::string option, path, real;
    std::vector<std::string> names;
    bool holds(const std::string& real_output) const;
    bool holds_within(const std::string& real_output) const;
  };
  bool add_input(std::string_view option, const std::string& path);
  std::string real_input(const std::string& path, bool is_link);
  static std::string refusal(const Named& output);
  static bool coincide(const Named& output, const Named& other);
  void check_folders(std::vector<std::string>& problems) const;

  std::vector<Named> inputs_, outputs_, filled_;
  std::vector<Kept> kept_;
  // The folder of the last input and its real path: thousands of inputs may lie in one.
  std::optional<std::string> last_folder_;
  std::string last_real_folder_;
};

}  // namespace megalith
