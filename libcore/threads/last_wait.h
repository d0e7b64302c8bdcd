#pragma once

#include <chrono>

namespace megalith {

// A destructor must wait for work that uses the owner's memory, such as that of a thread: it cannot abandon
// it. It waits for a limited time. If the work does not end by then, the process does.

/// How long a destructor waits. At first 10 minutes; a run sets the time that its ranks wait for each other.
std::chrono::milliseconds last_wait_limit();
void set_last_wait_limit(std::chrono::milliseconds wanted);

/// Ends the process at once with the code of kComm, after one line that says what a destructor waited for
/// and for how long. `what`: a noun ("the thread that writes a checkpoint").
[[noreturn]] void end_late_process(const char* what);

/// The functions above, for a plugin, which cannot call them itself.
struct LastWaits {
  std::chrono::milliseconds (*limit)() = last_wait_limit;
  void (*end_process)(const char* what) = end_late_process;
};

}  // namespace megalith
