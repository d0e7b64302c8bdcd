#include "libcore/io/streams/standard_streams.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <streambuf>

#include <fcntl.h>
#include <unistd.h>

namespace megalith {
namespace {

[[noreturn]] void fail_stdout(int error) {
  const std::string what = concat("stdout: cannot write: ", std::strerror(error));
  if (error == EPIPE) throw ReaderGone(ErrorKind::kIo, what);
  fail(ErrorKind::kIo, what);
}

/// Passes all text on to stdio without buffering it: the only buffer is stdio's, so output through std::cout
/// and other output to stdout stays in order.
class StdoutBuffer : public std::streambuf {
 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char byte = traits_type::to_char_type(c);
    write_stdout({&byte, 1});
    return c;
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    write_stdout({text, static_cast<size_t>(size)});
    return size;
  }
  int sync() override {
    flush_stdout();
    return 0;
  }
};

}  // namespace

void open_standard_descriptors() {
  constexpr int kModes[] = {O_WRONLY, O_RDONLY, O_RDWR};
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", kModes[fd]) != fd)  // open() takes the lowest free descriptor, which is fd
      fail(ErrorKind::kIo, "/dev/null: cannot open: ", std::strerror(errno));
  }
}

void write_stdout(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_stdout(errno);
}

void flush_stdout() {
  if (std::fflush(stdout) != 0) fail_stdout(errno);
  if (std::ferror(stdout)) fail_stdout(EIO);  // an earlier write failed; its errno is lost
}

void finish_stdout() {
  flush_stdout();
  const int copy = ::dup(STDOUT_FILENO);  // closing a copy reports errors, but stdout stays open
  if (copy >= 0 && ::close(copy) != 0) fail_stdout(errno);
}

void check_cout() {
  static StdoutBuffer* const kBuffer = new StdoutBuffer;  // never destroyed: std::cout is used until the end
  std::cout.rdbuf(kBuffer);
  std::cout.exceptions(std::ios::badbit);
}

}  // namespace megalith
