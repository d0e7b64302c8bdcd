// bench_all_reduce [RANKS]: sums fp32 gradients of a model of 124M parameters (498 MB), and their bf16
// rounding (249 MB), over RANKS (2) ranks: first processes on the loopback interface, then threads. Prints
// one JSON object a line: the median, min and max of seven runs after two warm-ups, in milliseconds, as rank
// 0 sees them, and the processor time of its process (for threads, that of all ranks), which is meaningful on
// a busy machine too.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/processes/gloo_comm.h"
#include "libcore/parallel/threads/thread_comm.h"

namespace megalith {
namespace {

constexpr int64_t kParameters = 124'475'904;
constexpr size_t kTurns = 7, kWarm = 2;

/// Processor time of all threads of this process so far.
double process_ms() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

void measure(Communicator& world, const char* ranks, DType dtype) {
  const auto backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  std::vector<std::byte> memory(static_cast<size_t>(kParameters) * size_of(dtype));
  std::vector<double> ms, processor_ms;
  for (size_t turn = 0; turn < kWarm + kTurns; ++turn) {
    world.exchange("");
    const double processor = process_ms();
    const auto start = std::chrono::steady_clock::now();
    world.all_reduce(stream, {memory.data(), dtype, {kParameters}}, Reduce::kSum);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    if (turn < kWarm) continue;
    ms.push_back(time.count());
    processor_ms.push_back(process_ms() - processor);
  }
  std::sort(ms.begin(), ms.end());
  std::sort(processor_ms.begin(), processor_ms.end());
  if (world.rank() == 0)
    std::printf(
        R"({"ranks": %d, "are": "%s", "dtype": "%s", "MB": %.0f, "ms": %.0f, "least": %.0f, "most": %.0f, "processor_ms": %.0f})"
        "\n",
        world.size(), ranks, std::string(name_of(dtype)).c_str(), static_cast<double>(memory.size()) / 1e6,
        ms[kTurns / 2], ms.front(), ms.back(), processor_ms[kTurns / 2]);
}

void measure_all(Communicator& world, const char* ranks) {
  measure(world, ranks, DType::kF32);
  measure(world, ranks, DType::kBf16);
}

// ---- processes: rank 0 is this one; the others send it their addresses and receive those of all

constexpr size_t kFrame = 65536;
using Frame = std::array<char, kFrame>;

void put(int socket, std::string_view text) {
  Frame frame{};
  text.copy(frame.data() + sizeof(size_t), kFrame - sizeof(size_t));
  const size_t size = text.size();
  std::copy_n(reinterpret_cast<const char*>(&size), sizeof size, frame.data());
  if (send(socket, frame.data(), kFrame, 0) != static_cast<ssize_t>(kFrame))
    fail(ErrorKind::kIo, "a rank is gone");
}
std::string get(int socket) {
  Frame frame{};
  if (recv(socket, frame.data(), kFrame, MSG_WAITALL) != static_cast<ssize_t>(kFrame))
    fail(ErrorKind::kIo, "a rank is gone");
  size_t size = 0;
  std::copy_n(frame.data(), sizeof size, reinterpret_cast<char*>(&size));
  return {frame.data() + sizeof size, size};
}

std::vector<std::string> exchange_at_root(const std::vector<int>& sockets, std::string_view mine) {
  std::vector<std::string> all = {std::string(mine)};
  for (const int socket : sockets) all.push_back(get(socket));
  for (const int socket : sockets)
    for (const std::string& text : all) put(socket, text);
  return all;
}
std::vector<std::string> exchange_with_root(int socket, int size, std::string_view mine) {
  put(socket, mine);
  std::vector<std::string> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(get(socket));
  return all;
}

void run_rank(int rank, int size, HostExchange exchange) {
  const auto world = make_process_comm(
      {.rank = rank, .size = size, .exchange = std::move(exchange), .interface_address = "127.0.0.1"});
  measure_all(*world, "processes");
}

void run_processes(int size) {
  std::vector<int> sockets;
  for (int rank = 1; rank < size; ++rank) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) fail(ErrorKind::kIo, "no sockets for ranks");
    const pid_t pid = fork();
    if (pid < 0) fail(ErrorKind::kIo, "no process for a rank");
    if (pid == 0) {
      run_rank(rank, size, [=](std::string_view mine) { return exchange_with_root(ends[1], size, mine); });
      std::exit(0);
    }
    close(ends[1]);
    sockets.push_back(ends[0]);
  }
  run_rank(0, size, [&](std::string_view mine) { return exchange_at_root(sockets, mine); });
  while (wait(nullptr) > 0) {
  }
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  try {
    const int size = argc > 1 ? std::atoi(argv[1]) : 2;
    if (size < 2) megalith::fail(megalith::ErrorKind::kUsage, "want two ranks or more, got ", argv[1]);
    megalith::run_processes(size);
    megalith::run_thread_ranks(
        size, {}, [](megalith::Communicator& world) { megalith::measure_all(world, "threads"); });
    return 0;
  } catch (const megalith::Error& error) {
    std::fprintf(stderr, "bench_all_reduce: %s\n", error.what());
    return megalith::exit_code(error.kind());
  }
}
