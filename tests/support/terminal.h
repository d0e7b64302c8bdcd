#pragma once

#include <string>

#include <sys/types.h>

#include "tests/support/files.h"

namespace megalith::test {

/// A shell command that runs on a new terminal with `columns` columns.
class TerminalCommand {
 public:
  TerminalCommand(const std::string& command, int columns);
  ~TerminalCommand();  // kills the command if finish() was not called
  TerminalCommand(const TerminalCommand&) = delete;
  TerminalCommand& operator=(const TerminalCommand&) = delete;

  /// Types keys, such as "\x03" for Ctrl-C.
  void type(const std::string& keys);
  /// Waits until the command has written `text` after what earlier calls waited for, for a minute at most.
  /// Returns whether it has.
  bool wait_for(const std::string& text);
  /// What the command has written since the text that the last wait_for() waited for.
  std::string rest() const { return result_.out.substr(seen_); }
  /// Waits until the command ends. Returns everything that it wrote to stdout and stderr, with "\r\n"
  /// replaced by "\n".
  CommandResult finish();

 private:
  bool read_more();  // false: the command has closed its terminal

  pid_t child_ = -1;
  int terminal_ = -1;
  size_t seen_ = 0;
  CommandResult result_;
};

/// Runs a shell command on a new terminal with `columns` columns and waits for it. `typed` is its input.
/// Returns what TerminalCommand::finish() returns.
CommandResult run_on_terminal(const std::string& command, int columns, const std::string& typed = {});

/// The number of characters in the longest line of a terminal's output. Lines end at "\n" and "\r"; escape
/// sequences do not count.
size_t longest_line(const std::string& written);

}  // namespace megalith::test
