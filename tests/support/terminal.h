#pragma once

#include <string>

#include "tests/support/files.h"

namespace megalith::test {

/// Runs a shell command on a terminal of its own and waits for it. Its input is `typed`. Returns what it
/// wrote to stdout and stderr together, with "\r\n" as "\n".
CommandResult run_on_terminal(const std::string& command, int columns, const std::string& typed = {});

/// The number of characters in the longest line of a terminal's output, where "\n" and "\r" end a line and
/// escape sequences do not count.
size_t longest_line(const std::string& written);

}  // namespace megalith::test
