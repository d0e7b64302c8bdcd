#pragma once

#include <optional>
#include <string>

#include "libcore/io/run/lock_file.h"

namespace megalith {

/// Whether a device or FIFO has this name, which an output is written to without taking its place.
bool is_stream(const std::string& path);

/// Keeps an output that will be written later, or bit by bit, for its owner alone while this lives: what is a
/// file, or not there yet, is locked as LockFile does, what a link leads to in its place; a FIFO is open, so
/// that its reader waits and one that nobody reads is refused now (kIo) and not after the work. A device is
/// anybody's. An empty path: nothing.
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
