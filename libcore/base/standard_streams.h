#pragma once

#include <string_view>

#include "libcore/base/error.h"

namespace megalith {

/// Opens each of the descriptors 0, 1 and 2 that is closed on /dev/null. Otherwise a file of the program
/// could get such a number, and with it what is written to stdout or the log. They are opened in the wrong
/// direction, stdin for writing, so that using them still fails and no data is lost unnoticed. Only stderr
/// accepts everything: the log may be lost. Must be the first thing that main() does. kIo if there is no
/// /dev/null.
void open_standard_descriptors();

/// Thrown when the reader of stdout has gone, as `head` does. The program then ends without a message:
/// nothing went wrong, and nobody is left to read one.
class ReaderGone : public Error {
 public:
  using Error::Error;
};

/// Appends to stdout, which is buffered. Throws kIo with the system's reason if it cannot be written, and
/// ReaderGone for a pipe without a reader; SIGPIPE must be ignored. What was written may also fail later:
/// call flush_stdout() at the end.
void write_stdout(std::string_view text);
/// Throws as write_stdout() does, for everything that was written.
void flush_stdout();
/// Throws as flush_stdout() does, and also for errors that a file system reports only when a file is closed.
/// Must come last.
void finish_stdout();

/// Makes std::cout throw as write_stdout() does; it would otherwise fail silently.
void check_cout();

}  // namespace megalith
