#pragma once

#include <exception>

#include "libcore/base/error.h"

namespace megalith {

// What the system refuses a process: memory, threads, a large enough stack. All of it ends as kSystem.

/// kSystem for a failed allocation; names the limits of the process.
NoMemory out_of_memory();

/// `error` as an Error: std::bad_alloc and a thread that could not be created as kSystem, any other exception
/// that is not ours as kInternal.
Error as_error(const std::exception_ptr& error);

/// kSystem if new stacks would be smaller than what a program needs: names the limit, or the variable that
/// gives OpenMP's threads their stacks.
void check_stack_limit();

/// Makes a refusal end the process with one line on stderr and the code of kSystem also where no caller gets
/// an exception: in a function or a thread that must not throw, within OpenMP, and in a library that does not
/// check its memory (UncheckedMemory). `name` of the program must stay valid. main() calls this first.
void report_refusals(const char* name);
/// Tells that main() ends the process, which only OpenMP otherwise does.
void end_normally();

/// While one exists, its thread calls a library that writes to address 0 when it gets no memory.
class UncheckedMemory {
 public:
  UncheckedMemory();
  ~UncheckedMemory();
  UncheckedMemory(const UncheckedMemory&) = delete;
  UncheckedMemory& operator=(const UncheckedMemory&) = delete;
};

}  // namespace megalith
