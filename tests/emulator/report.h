#pragma once

#include <string>

namespace megalith::emulator {

/// The exit code of a process that used the device in a way that a real device would not survive.
constexpr int kMisused = 99;

/// Ends the process with kMisused after a line with `what` and the call stack on stderr.
[[noreturn]] void end_with(const std::string& what);
/// The same from a signal handler: allocates nothing.
[[noreturn]] void end_in_handler(const char* what);

}  // namespace megalith::emulator
