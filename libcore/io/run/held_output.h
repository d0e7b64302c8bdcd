#pragma once

#include <optional>
#include <string>

#include "libcore/io/run/lock_file.h"

namespace megalith {

/// Whether the name is that of a device or FIFO, which an output is written to without replacing it.
bool is_stream(const std::string& path);

/// Reserves an output that is written later, or piece by piece, for its owner, as long as this object lives.
/// A file, existing or not, is locked by LockFile; of a link, its target is. A FIFO is opened, so that its
/// reader waits, and one without a reader is refused now (kIo) instead of after the work. A device is not
/// reserved. An empty path: nothing.
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
