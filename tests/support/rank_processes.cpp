#include "tests/support/rank_processes.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxRanks = 8;
constexpr unsigned kMaxSeconds = 60;
constexpr size_t kText = 16384;

struct Text {
  size_t size = 0;
  std::array<char, kText> bytes{};

  void set(std::string_view text) { size = text.copy(bytes.data(), kText); }
  std::string get() const { return {bytes.data(), size}; }
};

}  // namespace

struct Processes::Board {
  std::atomic<int> arrived{0}, connected{0}, ready{0};
  std::atomic<bool> meanwhile_done{false};
  std::array<Text, kMaxRanks> offers, errors;
  std::array<std::atomic<double>, kMaxRanks> seconds{};
};

bool RankEnd::is_exit(int code) const {
  return WIFEXITED(status) && WEXITSTATUS(status) == code;
}
bool RankEnd::is_signal(int signal) const {
  return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

Processes::Processes(int size, std::chrono::milliseconds timeout) : size_(size), timeout_(timeout) {
  void* const memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || size > kMaxRanks)
    throw std::system_error(errno, std::generic_category(), "memory for ranks");
  board_ = new (memory) Board;
}

Processes::~Processes() {
  munmap(board_, sizeof(Board));
}

/// Waits for the condition. If it never becomes true, this process's alarm ends the wait.
void Processes::await(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::vector<std::string> Processes::exchange(int rank, std::string_view mine) {
  board_->offers[static_cast<size_t>(rank)].set(mine);
  ++board_->arrived;
  await([&] { return board_->arrived == size_; });
  std::vector<std::string> all;
  for (int other = 0; other < size_; ++other) all.push_back(board_->offers[static_cast<size_t>(other)].get());
  return all;
}

void Processes::run_rank(int rank, const Body& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(kMaxSeconds);
  int code = 0;
  Clock::time_point begin = Clock::now();
  try {
    std::vector<std::string> names;
    for (int r = 0; r < size_; ++r) names.push_back(concat("rank ", r, " on host h", r));
    const auto world =
        make_process_comm({.rank = rank,
                           .size = size_,
                           .exchange = [this, rank](std::string_view mine) { return exchange(rank, mine); },
                           .interface_address = "127.0.0.1",
                           .timeout = timeout_,
                           .rank_names = names});
    ++board_->connected;
    await([&] { return board_->connected == size_; });
    begin = Clock::now();
    body(*world);
  } catch (const Error& error) {
    board_->errors[static_cast<size_t>(rank)].set(error.what());
    code = exit_code(error.kind());
  } catch (const std::exception& error) {
    board_->errors[static_cast<size_t>(rank)].set(error.what());
    code = 70;
  }
  board_->seconds[static_cast<size_t>(rank)] = std::chrono::duration<double>(Clock::now() - begin).count();
  fflush(stdout);
  _exit(testing::Test::HasFailure() ? 1 : code);
}

void Processes::ready() {
  ++board_->ready;
}
void Processes::await_meanwhile() const {
  await([&] { return board_->meanwhile_done.load(); });
}
void Processes::signal(int rank, int signal) const {
  kill(pids_[static_cast<size_t>(rank)], signal);
}

void Processes::await_end(int rank) {
  const auto place = static_cast<size_t>(rank);
  if (ended_[place]) return;
  while (waitpid(pids_[place], &ends_[place].status, 0) < 0 && errno == EINTR) {
  }
  ended_[place] = true;
  ends_[place].error = board_->errors[place].get();
  ends_[place].seconds = board_->seconds[place];
}

std::vector<RankEnd> Processes::run(const Body& body, const std::function<void()>& meanwhile) {
  fflush(stdout);
  ends_.assign(static_cast<size_t>(size_), {});
  ended_.assign(static_cast<size_t>(size_), false);
  for (int rank = 0; rank < size_; ++rank) {
    const pid_t pid = fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid == 0) run_rank(rank, body);
    pids_.push_back(pid);
  }
  if (meanwhile) {
    const Clock::time_point last = Clock::now() + std::chrono::seconds(kMaxSeconds);
    await([&] { return board_->ready == size_ || Clock::now() > last; });
    meanwhile();
    board_->meanwhile_done = true;
  }
  for (int rank = 0; rank < size_; ++rank) await_end(rank);
  return ends_;
}

}  // namespace megalith
