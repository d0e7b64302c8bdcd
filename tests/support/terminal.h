#pragma once

#include <string>

#include "tests/support/files.h"

namespace megalith::test {

/// Runs a shell command on a new terminal with `columns` columns and waits for it. `typed` is its input.
/// Returns everything that it wrote to stdout and stderr, with "\r\n" replaced by "\n".
CommandResult run_on_terminal(const std::string& command, int columns, const std::string& typed = {});

/// The number of characters in the longest line of a terminal's output. Lines end at "\n" and "\r"; escape
/// sequences do not count.
size_t longest_line(const std::string& written);

}  // namespace megalith::test
