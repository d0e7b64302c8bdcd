#include "tests/support/terminal.h"

#include <algorithm>
#include <stdexcept>

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/utf8.h"

namespace megalith::test {

CommandResult run_on_terminal(const std::string& command, int columns, const std::string& typed) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child < 0) throw std::runtime_error("forkpty failed");
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  const std::string input = typed + "\x04";  // Ctrl-D, the end of input
  if (::write(terminal, input.data(), input.size()) < 0)
    throw std::runtime_error("the terminal takes no input");
  CommandResult result;
  char buffer[4096];
  for (ssize_t n; (n = ::read(terminal, buffer, sizeof buffer)) > 0;)
    result.out.append(buffer, static_cast<size_t>(n));
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(terminal);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  size_t at = 0;
  while ((at = result.out.find("\r\n", at)) != std::string::npos) result.out.erase(at, 1);
  return result;
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
