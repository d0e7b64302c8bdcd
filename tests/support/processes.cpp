#include "tests/support/processes.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/launch/socket.h"

namespace megalith::test {
namespace {

std::string result_of(const std::function<std::string()>& body) {
  std::string log;
  set_log_sink([&log](const std::string& line) { log += line + "\n"; });
  Json json = Json::object();
  try {
    json.set("text", body());
    json.set("code", 0);
  } catch (const Error& error) {
    json.set("text", error.what());
    json.set("code", exit_code(error.kind()));
  }
  json.set("log", log);
  return json.dump();
}

}  // namespace

ForkedProcess::ForkedProcess(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("pipe");
  id_ = ::fork();
  if (id_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::alarm(60);  // kills the process if its body never ends
    ::close(ends[0]);
    const std::string result = result_of(body);
    const ssize_t written = ::write(ends[1], result.data(), result.size());
    ::_exit(written == static_cast<ssize_t>(result.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  pipe_ = ends[0];
}

ForkedProcess::ForkedProcess(ForkedProcess&& other) noexcept
    : id_(std::exchange(other.id_, -1)), pipe_(std::exchange(other.pipe_, -1)) {}

ForkedProcess::~ForkedProcess() {
  if (id_ > 0) {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  if (pipe_ >= 0) ::close(pipe_);
}

ProcessResult ForkedProcess::wait() {
  std::string bytes;
  char buffer[4096];
  for (ssize_t got; (got = ::read(pipe_, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR);)
    if (got > 0) bytes.append(buffer, static_cast<size_t>(got));
  ::waitpid(std::exchange(id_, -1), nullptr, 0);
  if (bytes.empty()) return {.code = -1, .text = "killed", .log = {}};
  const Json json = Json::parse(bytes, "a test's process");
  return {.code = static_cast<int>(json["code"].as_int()),
          .text = json["text"].as_string(),
          .log = json["log"].as_string()};
}

std::vector<ProcessResult> run_processes(int ranks, const std::function<std::string(int rank)>& body) {
  std::vector<ForkedProcess> processes;
  for (int rank = 0; rank < ranks; ++rank) processes.emplace_back([&body, rank] { return body(rank); });
  std::vector<ProcessResult> results;
  for (ForkedProcess& process : processes) results.push_back(process.wait());
  return results;
}

bool await_file(const std::string& path) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + std::chrono::minutes(1);
  while (!file_exists(path) && Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return file_exists(path);
}

int threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

int free_port() {
  return listen_on("127.0.0.1", 0).local_port();
}

}  // namespace megalith::test
