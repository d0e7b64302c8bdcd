#include "libcore/doctor/check_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

Findings result_of(const std::string& name, const std::function<Findings()>& check) {
  try {
    return check();
  } catch (const std::exception& error) {
    return {finding_of(name, Finding::State::kBad, error.what())};
  }
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // nobody reads any more
    text.remove_prefix(static_cast<size_t>(count));
  }
}

int milliseconds_until(std::chrono::steady_clock::time_point deadline) {
  const auto left = deadline - std::chrono::steady_clock::now();
  return static_cast<int>(
      std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(left).count()));
}

/// What arrives until the other end is closed; nothing if it is still open at the deadline.
std::optional<std::string> read_until(int descriptor, std::chrono::steady_clock::time_point deadline) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    pollfd waiting{.fd = descriptor, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, milliseconds_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
}

}  // namespace

CheckProcess::CheckProcess(std::string name, const std::function<Findings()>& check)
    : name_(std::move(name)) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) == 0) {
    pipe_ = ends[0];
    process_ = ::fork();
  }
  if (process_ < 0) refused_ = std::strerror(errno);
  if (process_ == 0) {
    ::setpgid(0, 0);  // ends with what it starts
    ::close(ends[0]);
    write_all(ends[1], to_json(result_of(name_, check)).dump());
    ::_exit(0);
  }
  if (pipe_ >= 0) ::close(ends[1]);
}

CheckProcess::~CheckProcess() {
  end();
}

CheckProcess::CheckProcess(CheckProcess&& other) noexcept
    : name_(std::move(other.name_)),
      refused_(std::move(other.refused_)),
      process_(std::exchange(other.process_, -1)),
      pipe_(std::exchange(other.pipe_, -1)) {}

void CheckProcess::end() {
  if (process_ > 0) {
    ::kill(-process_, SIGKILL);
    ::kill(process_, SIGKILL);  // where it has not begun its group yet
    while (::waitpid(process_, &status_, 0) < 0 && errno == EINTR) {
    }
  }
  if (pipe_ >= 0) ::close(pipe_);
  process_ = pipe_ = -1;
}

Findings CheckProcess::take(std::chrono::steady_clock::time_point deadline) {
  if (process_ < 0)
    return {{.check = name_,
             .state = Finding::State::kBad,
             .text = concat("no process could be started: ", refused_),
             .remedy = "raise ulimit -u, or end other programs"}};
  const std::optional<std::string> said = read_until(pipe_, deadline);
  if (said && !said->empty()) {
    while (::waitpid(process_, &status_, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    end();
    return findings_of(Json::parse(*said, name_));
  }
  const bool slow = !said;
  end();
  if (slow)
    return {{.check = name_,
             .state = Finding::State::kWarning,
             .text = "the check did not end in time",
             .remedy = "run megalith doctor again when the machine does less"}};
  return {failure()};
}

Finding CheckProcess::failure() const {
  return {.check = name_,
          .state = Finding::State::kBad,
          .text = WIFSIGNALED(status_) ? concat("the check ended by signal ", WTERMSIG(status_))
                                       : concat("the check ended with code ", WEXITSTATUS(status_)),
          .remedy = "install Megalith again, and report it if that does not help"};
}

}  // namespace megalith
