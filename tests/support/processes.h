#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace megalith::test {

/// The result of a test's process: how it ended, and what its body returned or threw.
struct ProcessResult {
  int code = 0;      // 0, or the exit code of the thrown Error
  std::string text;  // what the body returned, or the Error's message
  std::string log;   // the lines that it logged
};

/// A child process that runs `body`. The constructor starts it.
class ForkedProcess {
 public:
  explicit ForkedProcess(const std::function<std::string()>& body);
  ~ForkedProcess();  // kills the process if wait() was not called
  ForkedProcess(ForkedProcess&&) noexcept;
  ForkedProcess(const ForkedProcess&) = delete;
  ForkedProcess& operator=(const ForkedProcess&) = delete;
  ForkedProcess& operator=(ForkedProcess&&) = delete;

  pid_t id() const { return id_; }
  ProcessResult wait();  // waits until it has ended

 private:
  pid_t id_ = -1;
  int pipe_ = -1;
};

/// Runs `body` once per rank, each in its own process, and waits for all.
std::vector<ProcessResult> run_processes(int ranks, const std::function<std::string(int rank)>& body);

/// Waits until another process has made the file, for a minute at most. Whether it is there.
bool await_file(const std::string& path);

/// The number of threads of this process.
int threads_of_process();

/// A free port of the loopback interface.
int free_port();

}  // namespace megalith::test
