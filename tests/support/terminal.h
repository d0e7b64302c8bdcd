#pragma once

#include <string>

#include "tests/support/files.h"

namespace megalith::test {

/// Runs a shell command on a terminal of its own and waits; what it wrote, on stdout and stderr alike, with
/// "\r\n" as
/// "\n". It reads `typed` and then the end of its input.
CommandResult run_on_terminal(const std::string& command, int columns, const std::string& typed = {});

/// Characters of the longest line of what a terminal was given, where a line is what stands between two of
/// "\n" and
/// "\r", without escape sequences.
size_t longest_line(const std::string& written);

}  // namespace megalith::test
