#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

namespace megalith {

class Interrupt;

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
  /// To be called at the end of its stdout: waits for its end. If a stop is asked meanwhile, throws Stopped;
  /// if `interrupt` is set, kComm. Throws kComm, with `name`, if its exit code is not 0; kSystem if the
  /// system does not tell it.
  void finish(const std::string& name, const Interrupt* interrupt = nullptr);

 private:
  bool wait(int options);  // whether it has ended; sets status_
  void wait_for_end(const std::string& name, const Interrupt* interrupt);

  std::string command_;
  int descriptor_ = -1;
  pid_t process_ = -1;         // -1: it has ended
  std::optional<int> status_;  // with which it ended; nothing if the system does not tell it
};

}  // namespace megalith
