#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/types.h>

#include "libcore/parallel/processes/gloo_comm.h"

/// Skips a test, or in SetUp() all of a fixture, whose ranks are processes, where the build has no Gloo.
#define SKIP_WITHOUT_GLOO() \
  if (!megalith::has_process_comm()) GTEST_SKIP() << "built without Gloo (package libgloo-dev)"

namespace megalith {

/// The result of a rank's process.
struct RankEnd {
  int status = 0;      // as waitpid() gives it
  std::string error;   // the message of the thrown error, or the failed expectations
  double seconds = 0;  // from when all ranks were connected until this rank ended

  bool is_exit(int code) const;
  bool is_signal(int signal) const;
};

/// Runs ranks as processes that are connected over the loopback interface. Rank r is called "rank r on host
/// h<r>". The processes are killed after a minute.
class Processes {
 public:
  using Body = std::function<void(Communicator& world)>;
  explicit Processes(int size, std::chrono::milliseconds timeout = std::chrono::seconds(30));
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  /// Runs `body` in each rank and returns when all ranks have ended. A process whose body throws an Error
  /// ends with its exit code; one in which an EXPECT failed ends with 1. If given, `meanwhile` runs in this
  /// process as soon as all ranks have called ready().
  std::vector<RankEnd> run(const Body& body, const std::function<void()>& meanwhile = {});

  // In a body:
  /// Tells the test that this rank is ready for `meanwhile`.
  void ready();
  /// Waits until `meanwhile` has ended.
  void await_meanwhile() const;

  // In `meanwhile`:
  void signal(int rank, int signal) const;
  /// Waits until that rank has ended.
  void await_end(int rank);

 private:
  struct Board;  // is in memory that all processes share
  [[noreturn]] void run_rank(int rank, const Body& body);
  std::vector<std::string> exchange(int rank, std::string_view mine);
  static void await(const std::function<bool()>& condition);

  int size_;
  std::chrono::milliseconds timeout_;
  Board* board_;
  std::vector<pid_t> pids_;
  std::vector<RankEnd> ends_;
  std::vector<bool> ended_;
};

}  // namespace megalith
