#include "tests/support/terminal.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <utility>

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/utf8.h"

namespace megalith::test {

TerminalCommand::TerminalCommand(const std::string& command, int columns) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  child_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
  if (child_ < 0) throw std::runtime_error("forkpty failed");
  if (child_ == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
}

TerminalCommand::~TerminalCommand() {
  if (child_ < 0) return;
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
  ::close(terminal_);
}

void TerminalCommand::type(const std::string& keys) {
  if (::write(terminal_, keys.data(), keys.size()) < 0)
    throw std::runtime_error("the terminal takes no input");
}

bool TerminalCommand::read_more() {
  char buffer[4096];
  const ssize_t n = ::read(terminal_, buffer, sizeof buffer);
  if (n <= 0) return false;
  result_.out.append(buffer, static_cast<size_t>(n));
  return true;
}

bool TerminalCommand::wait_for(const std::string& text) {
  constexpr std::chrono::minutes kPatience{1};
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    if (const size_t at = result_.out.find(text, seen_); at != std::string::npos) {
      seen_ = at + text.size();
      return true;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd watched{terminal_, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&watched, 1, static_cast<int>(left.count())) <= 0 || !read_more())
      return false;
  }
}

CommandResult TerminalCommand::finish() {
  while (read_more()) {
  }
  int status = 0;
  ::waitpid(child_, &status, 0);
  ::close(terminal_);
  child_ = -1;
  result_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  size_t at = 0;
  while ((at = result_.out.find("\r\n", at)) != std::string::npos) result_.out.erase(at, 1);
  return std::move(result_);
}

CommandResult run_on_terminal(const std::string& command, int columns, const std::string& typed) {
  TerminalCommand run(command, columns);
  run.type(typed + "\x04");  // Ctrl-D, the end of input
  return run.finish();
}

size_t longest_line(const std::string& written) {
  int64_t longest = 0;
  std::string line;
  for (size_t i = 0; i <= written.size(); ++i) {
    if (i == written.size() || written[i] == '\n' || written[i] == '\r') {
      longest = std::max(longest, count_code_points(line));
      line.clear();
    } else if (written[i] == '\x1b') {
      while (i + 1 < written.size() && written[i] != 'K' && written[i] != 'm') ++i;
    } else {
      line += written[i];
    }
  }
  return static_cast<size_t>(longest);
}

}  // namespace megalith::test
