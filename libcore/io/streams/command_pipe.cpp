#include "libcore/io/streams/command_pipe.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/streams/held_signals.h"
#include "libcore/io/streams/input_stream.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

/// What a child process has of ours: the pipe as its stdout, no stdin, no signal blocked or ignored.
class SpawnSettings {
 public:
  explicit SpawnSettings(int output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    sigset_t none, handled;  // none, and those that this program handles or ignores
    sigemptyset(&none);
    sigemptyset(&handled);
    for (const int signal : kStopSignals) sigaddset(&handled, signal);
    sigaddset(&handled, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &handled);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  int spawn(pid_t& process, std::string& command) const {
    std::string shell = "sh", option = "-c";
    std::array<char*, 4> words = {shell.data(), option.data(), command.data(), nullptr};
    return posix_spawn(&process, "/bin/sh", &actions_, &attributes_, words.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

CommandPipe::CommandPipe(std::string command) : command_(std::move(command)) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    fail(ErrorKind::kSystem, "cannot make a pipe: ", std::strerror(errno));
  descriptor_ = ends[0];
  const int error = SpawnSettings(ends[1]).spawn(process_, command_);
  ::close(ends[1]);
  if (error == 0) return;
  ::close(descriptor_);
  fail(ErrorKind::kSystem, "cannot start /bin/sh: ", std::strerror(error));
}

CommandPipe::~CommandPipe() {
  ::close(descriptor_);
  if (process_ < 0) return;
  ::kill(-process_, SIGKILL);
  wait(0);
}

bool CommandPipe::wait(int options) {
  int status = 0;
  pid_t ended = -1;
  do ended = ::waitpid(process_, &status, options);
  while (ended < 0 && errno == EINTR);
  if (ended == 0) return false;  // with WNOHANG: it still runs
  if (ended > 0) status_ = status;
  process_ = -1;
  return true;
}

void CommandPipe::wait_for_end(const std::string& name, const Interrupt* interrupt) {
  // Most commands end as soon as they have closed their stdout. For the others this polls: a waitpid() that
  // blocks would go on after a signal, whose handler restarts system calls, and not see that a stop is asked.
  constexpr int kLongestPause = 50;  // ms
  pollfd watched{.fd = interrupt ? interrupt->descriptor() : -1, .events = POLLIN, .revents = 0};
  for (int pause = 1; process_ >= 0 && !wait(WNOHANG); pause = std::min(2 * pause, kLongestPause)) {
    stop_if_asked();
    if (::poll(&watched, 1, pause) <= 0) continue;  // a signal (EINTR) is seen above
    stop_if_asked();
    fail(ErrorKind::kComm, name, ": waiting for the end of `", command_, "` was interrupted; try again");
  }
}

void CommandPipe::finish(const std::string& name, const Interrupt* interrupt) {
  wait_for_end(name, interrupt);
  if (!status_)  // then half an object would pass for a whole one
    fail(ErrorKind::kSystem, name, ": cannot learn how `", command_, "` ended: ", std::strerror(ECHILD),
         "; start this program where SIGCHLD is not ignored");
  if (WIFEXITED(*status_) && WEXITSTATUS(*status_) == 0) return;
  const std::string how = WIFSIGNALED(*status_) ? concat("was ended by signal ", WTERMSIG(*status_))
                                                : concat("ended with exit code ", WEXITSTATUS(*status_));
  fail(ErrorKind::kComm, name, ": `", command_, "` ", how, "; its own messages are on stderr; try again");
}

}  // namespace megalith
