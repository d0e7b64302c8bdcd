#include "libcore/launch/server_ranks.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <thread>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/io/streams/held_signals.h"

namespace megalith {
namespace {

using std::chrono::steady_clock;

constexpr auto kLook = std::chrono::milliseconds(20);  // between two checks of the ranks
constexpr double kGrace = 10;  // seconds for the others to end after a rank has failed
constexpr int kTryAgain = exit_code(ErrorKind::kComm);

/// The environment of rank `first + local`: the variables of this process, and those that tell the rank its
/// place and the number of this start.
std::vector<std::string> environment_of(const ServerRanks& ranks, int local, int start) {
  std::map<std::string, std::string> set = {{"RANK", std::to_string(ranks.first + local)},
                                            {"WORLD_SIZE", std::to_string(ranks.world)},
                                            {"LOCAL_RANK", std::to_string(local)},
                                            {"LOCAL_WORLD_SIZE", std::to_string(ranks.count)},
                                            {"MASTER_ADDR", ranks.address},
                                            {"MASTER_PORT", std::to_string(ranks.port)},
                                            {kStartedHere, std::to_string(start)}};
  if (!ranks.token.empty()) set["MEGALITH_JOB_TOKEN"] = ranks.token;
  if (!ranks.devices.empty()) set["CUDA_VISIBLE_DEVICES"] = ranks.devices[static_cast<size_t>(local)];
  std::vector<std::string> variables;
  for (char** at = environ; *at; ++at)
    if (const std::string_view variable = *at;
        !set.contains(std::string(variable.substr(0, variable.find('=')))))
      variables.emplace_back(variable);
  for (const auto& [name, value] : set) variables.push_back(concat(name, '=', value));
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

/// Starts a process. Between fork and exec, the child makes only calls that are safe after a fork, since
/// another thread may have held a lock.
pid_t start(const std::string& program, std::vector<std::string> arguments,
            std::vector<std::string> variables) {
  const std::vector<char*> argv = pointers(arguments), envp = pointers(variables);
  const HeldSignals held;
  const pid_t parent = ::getpid(), id = ::fork();
  if (id < 0) fail(ErrorKind::kIo, "cannot start a rank: ", std::strerror(errno));
  if (id > 0) return id;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // a rank never outlives the process that started it
  held.let_end_child();
  if (::getppid() == parent) ::execve(program.c_str(), argv.data(), envp.data());
  ::_exit(exit_code(ErrorKind::kIo));
}

class Children {
 public:
  Children(const ServerRanks& ranks, std::optional<double> stop_limit)
      : ranks_(ranks), stop_limit_(stop_limit) {}
  ~Children() { signal(SIGKILL); }  // processes still run here only if another one could not be started
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  void add(int local, pid_t id) { running_[id] = {.rank = ranks_.first + local}; }
  bool any() const { return !running_.empty(); }
  const RankEnds& ends() const { return ends_; }
  void signal(int number) const {
    for (const auto& [id, child] : running_) ::kill(id, number);
  }
  /// SIGINT goes as SIGTERM, with the number of the signal that is meant (StopSignal).
  void pass_on(int number) const {
    for (const auto& [id, child] : running_)
      ::sigqueue(id, number == SIGINT ? SIGTERM : number, sigval{.sival_int = number});
  }
  /// Records which processes have ended, and kills those that should have.
  void look() {
    for (auto at = running_.begin(); at != running_.end();)
      at = has_ended(at->first, at->second) ? running_.erase(at) : std::next(at);
    if (stop_limit_)
      for (auto& [id, child] : running_)
        if (child.stopped && seconds_since(*child.stopped) > *stop_limit_) end_stopped(id, child);
    if (failed_ && any() && seconds_since(*failed_) > kGrace) signal(SIGKILL);
  }

 private:
  struct Child {
    int rank = 0;
    std::optional<steady_clock::time_point> stopped = {};  // since when
  };

  /// A debugger's stop is not reported here, but to the debugger.
  bool has_ended(pid_t id, Child& child) {
    int status = 0;
    while (::waitpid(id, &status, WNOHANG | WUNTRACED | WCONTINUED) == id) {
      if (WIFEXITED(status) || WIFSIGNALED(status)) {
        record_end(child.rank, status);
        return true;
      }
      child.stopped.reset();
      if (WIFSTOPPED(status)) child.stopped = steady_clock::now();
    }
    return false;
  }
  void record_end(int rank, int status) {
    const bool killed = WIFSIGNALED(status);
    int code = killed ? kTryAgain : WEXITSTATUS(status);
    if (code >= exit_code(ErrorKind::kUsage) && code <= exit_code(ErrorKind::kNoInput)) ends_.refusal = code;
    if (code == kStoppedRank) {
      ends_.stopped = true;
      code = kTryAgain;
    }
    if (code == 0) return;
    if (ends_.code == 0 || ends_.code == kTryAgain) ends_.code = code;
    if (failed_) return;
    failed_ = steady_clock::now();
    if (killed) log("rank ", rank, " was ended by SIG", ::sigabbrev_np(WTERMSIG(status)));
  }
  void end_stopped(pid_t id, Child& child) const {
    log("rank ", child.rank, " has been stopped for ", *stop_limit_, " s: it counts as dead");
    child.stopped.reset();
    ::kill(id, SIGKILL);
  }
  const ServerRanks& ranks_;
  const std::optional<double> stop_limit_;
  std::map<pid_t, Child> running_ = {};
  std::optional<steady_clock::time_point> failed_ = {};
  RankEnds ends_ = {};
};

}  // namespace

RankEnds run_server_ranks(const ServerRanks& ranks, const RankCommand& command, const StopSignal& stop) {
  Children children(ranks, command.stop_limit);
  for (int local = 0; local < ranks.count; ++local)
    children.add(local,
                 start(command.program, command.arguments, environment_of(ranks, local, command.start)));
  bool passed_on = false;
  while (children.any()) {
    if (stop.asked() && !passed_on) {
      children.pass_on(stop.number());
      passed_on = true;
    }
    children.look();
    if (children.any()) std::this_thread::sleep_for(kLook);
  }
  return children.ends();
}

}  // namespace megalith
