#pragma once

#include <optional>
#include <string>

#include "libcore/io/run/lock_file.h"

namespace megalith {

/// Whether `path` names a device or FIFO. Output is then written to it and does not replace it.
bool is_stream(const std::string& path);

/// Reserves an output that is written later or piece by piece, for as long as this object lives. A file,
/// existing or not, is locked by a LockFile; for a link, the link's target is locked. A FIFO is opened, so
/// that its reader keeps waiting; if it has no reader, the constructor throws kIo, so that the run fails
/// before the work and not after it. A device needs no reservation. If the path is empty, nothing is
/// reserved.
class HeldOutput {
 public:
  explicit HeldOutput(const std::string& path);
  ~HeldOutput();
  HeldOutput(const HeldOutput&) = delete;
  HeldOutput& operator=(const HeldOutput&) = delete;

 private:
  std::optional<LockFile> lock_;
  int fd_ = -1;
};

}  // namespace megalith
