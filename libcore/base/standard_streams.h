#pragma once

#include <string_view>

#include "libcore/base/error.h"

namespace megalith {

/// Opens those of the descriptors 0, 1 and 2 that are closed on /dev/null, so that no file of the program
/// gets such a number, and with it what is read from stdin or written to stdout or the log. They are opened
/// the other way round, stdin for writing: its use still fails, where /dev/null would hide that nothing was
/// read or kept. stderr takes everything: the log may be lost. The first thing that main() does. kIo when
/// there is no /dev/null.
void open_standard_descriptors();

/// Thrown when the reader of stdout has gone, as `head` does: an end without a message, because nothing went
/// wrong and nobody is left to tell.
class ReaderGone : public Error {
 public:
  using Error::Error;
};

/// Appends to stdout, which is buffered. Throws kIo, with the system's reason, when it cannot be written, and
/// ReaderGone for a pipe that nobody reads; SIGPIPE must be ignored. What was written earlier may fail later:
/// flush_stdout() at the end.
void write_stdout(std::string_view text);
/// Throws as write_stdout() for everything that was written.
void flush_stdout();
/// Throws like flush_stdout(), and for what a file system tells only when a file is closed, so it must come
/// last.
void finish_stdout();

/// Makes std::cout throw as write_stdout() does, because it would otherwise go on in silence.
void check_cout();

}  // namespace megalith
