#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

namespace megalith {

/// A shell command whose stdout is read. It has no input, our stderr, and a process group of its own. The
/// destructor kills all processes of the group that still run, unless finish() has seen the command's end.
class CommandPipe {
 public:
  /// Starts `command` with /bin/sh. Throws kSystem.
  explicit CommandPipe(std::string command);
  ~CommandPipe();
  CommandPipe(const CommandPipe&) = delete;
  CommandPipe& operator=(const CommandPipe&) = delete;

  /// Where its stdout is read; the pipe keeps it.
  int descriptor() const { return descriptor_; }
  /// To be called at the end of its stdout: waits for its end, or until a stop is asked, which throws
  /// Stopped. Throws kComm, with `name`, if its exit code is not 0; kSystem if the system does not tell it.
  void finish(const std::string& name);

 private:
  bool wait(int options);  // whether it has ended; sets status_

  std::string command_;
  int descriptor_ = -1;
  pid_t process_ = -1;         // -1: it has ended
  std::optional<int> status_;  // with which it ended; nothing if the system does not tell it
};

}  // namespace megalith
