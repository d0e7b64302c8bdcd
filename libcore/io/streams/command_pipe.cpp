#include "libcore/io/streams/command_pipe.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/streams/held_signals.h"

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
  wait();
}

std::optional<int> CommandPipe::wait() {
  const pid_t process = std::exchange(process_, -1);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0)
    if (errno != EINTR) return std::nullopt;
  return status;
}

void CommandPipe::finish(const std::string& name) {
  if (process_ < 0) return;
  const std::optional<int> status = wait();
  if (!status)  // then half an object would pass for a whole one
    fail(ErrorKind::kSystem, name, ": cannot learn how `", command_, "` ended: ", std::strerror(errno),
         "; start this program where SIGCHLD is not ignored");
  if (WIFEXITED(*status) && WEXITSTATUS(*status) == 0) return;
  const std::string how = WIFSIGNALED(*status) ? concat("was ended by signal ", WTERMSIG(*status))
                                               : concat("ended with exit code ", WEXITSTATUS(*status));
  fail(ErrorKind::kComm, name, ": `", command_, "` ", how, "; its own messages are on stderr; try again");
}

}  // namespace megalith
