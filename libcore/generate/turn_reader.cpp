#include "libcore/generate/turn_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <poll.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/utf8.h"
#include "libcore/io/streams/line_reader.h"

namespace megalith {
namespace {

volatile std::sig_atomic_t interrupted = 0;
const Interrupt* waker = nullptr;

void on_interrupt(int) {
  if (interrupted != 0) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  interrupted = 1;
  waker->set();  // safe in a signal handler: set() calls only write(2)
}

}  // namespace

AnswerStop::AnswerStop() {
  interrupted = 0;
  waker = &wake_;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &before_);
}

AnswerStop::~AnswerStop() {
  sigaction(SIGINT, &before_, nullptr);
  waker = nullptr;
}

bool AnswerStop::asked() const {
  return interrupted != 0;
}

void AnswerStop::woken() {
  pollfd watched{descriptor(), POLLIN, 0};
  uint64_t count = 0;
  if (::poll(&watched, 1, 0) == 1 && ::read(descriptor(), &count, sizeof count) < 0)
    fail(ErrorKind::kInternal, "cannot read an event descriptor: ", std::strerror(errno));
}

void AnswerStop::clear() {
  woken();
  interrupted = 0;
}

bool TurnReader::wait() {
  if (!stop_) return true;
  pollfd watched[] = {{STDIN_FILENO, POLLIN, 0}, {stop_->descriptor(), POLLIN, 0}};
  while (::poll(watched, 2, -1) < 0)
    if (errno != EINTR) fail(ErrorKind::kIo, "stdin: cannot wait for input: ", std::strerror(errno));
  if (watched[1].revents == 0) return true;
  stop_->woken();
  return false;
}

void TurnReader::read_more() {
  char bytes[1 << 16];
  const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof bytes);
  if (n < 0 && errno == EINTR) return;
  if (n < 0) fail(ErrorKind::kIo, "stdin: cannot read: ", std::strerror(errno));
  ended_ = n == 0;
  waiting_.append(bytes, static_cast<size_t>(n));
  if (waiting_.size() > kLongestLine)
    fail(ErrorKind::kData, "stdin: a line has more than ", kLongestLine >> 20, " MiB; wanted a question");
}

/// Takes a whole line out of what waits; at the end of the input, also a line without an end.
bool TurnReader::take_line(std::string& line) {
  size_t end = waiting_.find('\n');
  if (end == std::string::npos && (!ended_ || waiting_.empty())) return false;
  end = std::min(end, waiting_.size());
  line = waiting_.substr(0, end);
  waiting_.erase(0, end + 1);
  if (line.ends_with('\r')) line.pop_back();
  if (const size_t good = valid_utf8_prefix(line); good != line.size())
    fail(ErrorKind::kData, "stdin: byte ", good + 1, " of the line is not valid UTF-8");
  return true;
}

TurnReader::Got TurnReader::next(std::string& line) {
  while (!take_line(line)) {
    if (ended_) return Got::kEnd;
    if (!wait()) return Got::kInterrupted;
    read_more();
  }
  return Got::kLine;
}

}  // namespace megalith
