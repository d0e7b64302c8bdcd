#pragma once

#include <string_view>

#include "libcore/base/error.h"

namespace megalith {

/// Opens /dev/null on each of the descriptors 0, 1 and 2 that is closed. Otherwise a file that the program
/// opens could get one of these numbers, and text for stdout or the log would be written to that file. Stdin
/// is opened for writing only and stdout for reading only: using them still fails, so no data is lost
/// unnoticed. Only stderr accepts text: losing the log is acceptable. main() must call this first. Throws kIo
/// if there is no /dev/null.
void open_standard_descriptors();

/// Thrown when the reader of stdout has closed the pipe, as `head` does. The program then ends without a
/// message: nothing went wrong, and nobody is left to read one.
class ReaderGone : public Error {
 public:
  using Error::Error;
};

/// Appends to stdout, which is buffered. Throws kIo with the system's reason if stdout cannot be written, and
/// ReaderGone if stdout is a pipe without a reader, for which SIGPIPE must be ignored. A later write may fail
/// for buffered text: call flush_stdout() at the end.
void write_stdout(std::string_view text);
/// Writes out all buffered text. Throws as write_stdout() does.
void flush_stdout();
/// Flushes stdout as flush_stdout() does, and also throws for errors that a file system reports only when a
/// file is closed. Must be the last output to stdout.
void finish_stdout();

/// Makes std::cout throw as write_stdout() does: by default std::cout fails silently.
void check_cout();

}  // namespace megalith
