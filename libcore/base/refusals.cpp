#include "libcore/base/refusals.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace megalith {
namespace {

/// What our programs need was measured: training works with 100 KiB and crashes with 64. Almost four times as
/// much leaves room for other models, libraries and processors.
constexpr rlim_t kLeastStack = rlim_t{384} << 10;
constexpr uintptr_t kFirstPage = 4096;
constexpr const char* kNoMemory = "out of memory";
constexpr const char* kNoThread = "the system makes no more threads";
constexpr const char* kNoTeam = "OpenMP gets no more threads or memory";

const char* program = "megalith";
std::atomic<bool> ends_normally{false};
struct sigaction earlier {};

// In the thread's own block, so that a signal handler may read it.
[[gnu::tls_model("initial-exec")]] thread_local int unchecked = 0;

/// Passes the bytes of a file of the system to `take`, without memory of its own. Nothing if it cannot be
/// read.
template <class Take>
void read_parts(const char* path, const Take& take) {
  std::array<char, 4096> part;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  for (ssize_t n = 0; (n = ::read(fd, part.data(), part.size())) > 0;)
    take(std::string_view(part.data(), static_cast<size_t>(n)));
  ::close(fd);
}

/// The mappings that a process may have, if this one has nearly as many; else 0.
int64_t exhausted_mappings() {
  int64_t most = 0, mappings = 0;
  read_parts("/proc/sys/vm/max_map_count", [&](std::string_view digits) {
    for (const char c : digits)
      if (c >= '0' && c <= '9') most = 10 * most + (c - '0');
  });
  read_parts("/proc/self/maps", [&](std::string_view lines) {
    mappings += static_cast<int64_t>(std::count(lines.begin(), lines.end(), '\n'));
  });
  return mappings >= most - most / 100 ? most : 0;
}

/// A text without memory of its own: there may be none left.
class Text {
 public:
  template <class... Values>
  void add(const char* format, Values... values) {
    const size_t room = text_.size() - size_;
    const int written = std::snprintf(text_.data() + size_, room, format, values...);
    if (written > 0) size_ += std::min(static_cast<size_t>(written), room - 1);
  }
  void add_limit(__rlimit_resource_t which, const char* name, rlim_t unit) {
    rlimit limit{};
    if (::getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    add("%s ulimit %s is %llu", limits_++ == 0 ? ";" : ",", name,
        static_cast<unsigned long long>(limit.rlim_cur / unit));
  }
  /// Adds what was refused, the limits that may be why, and what to do.
  void add_refusal(const char* what) {
    add("%s", what);
    add_limit(RLIMIT_AS, "-v", 1024);
    add_limit(RLIMIT_DATA, "-d", 1024);
    if (what != kNoMemory) add_limit(RLIMIT_NPROC, "-u", 1);
    if (const int64_t most = what == kNoMemory ? exhausted_mappings() : 0; most > 0) {
      add("%s vm.max_map_count is %lld, and nearly as many files and blocks of memory are mapped; raise it "
          "with sysctl, or use fewer files",
          limits_ > 0 ? "," : ";", static_cast<long long>(most));
      return;
    }
    add(";%s use fewer ranks and threads or a smaller model", limits_ > 0 ? " raise it, or" : "");
  }
  const char* c_str() const { return text_.data(); }
  [[noreturn]] void end_process() {
    // One thread tells; the others wait for the end that it makes.
    static std::atomic<bool> told{false};
    if (told.exchange(true))
      while (true) ::pause();
    add("%s", "\n");
    const ssize_t written = ::write(STDERR_FILENO, text_.data(), size_);
    static_cast<void>(written);  // a failure cannot be reported anywhere else
    ::_exit(exit_code(ErrorKind::kSystem));
  }

 private:
  std::array<char, 1024> text_ = {};
  size_t size_ = 0;
  int limits_ = 0;
};

Error refusal(const char* what) {
  Text text;
  text.add_refusal(what);
  return {ErrorKind::kSystem, text.c_str()};
}

[[noreturn]] void end_refused(const char* what) {
  Text text;
  text.add("%s: error: ", program);
  text.add_refusal(what);
  text.end_process();
}

/// What the system refused; null for an error of another kind.
const char* refused(const std::system_error& error) {
  if (error.code() == std::errc::not_enough_memory) return kNoMemory;
  return error.code() == std::errc::resource_unavailable_try_again ? kNoThread : nullptr;
}

/// What std::terminate() calls: an exception has left a thread or a function that must not throw.
[[noreturn]] void end_of_exception() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const Error& error) {
    Text text;
    text.add("%s: error: %s", program, error.what());
    if (error.kind() == ErrorKind::kSystem) text.end_process();
  } catch (const std::bad_alloc&) {
    end_refused(kNoMemory);
  } catch (const std::system_error& error) {
    if (const char* const what = refused(error)) end_refused(what);
  } catch (...) {
  }
  std::abort();
}

/// What exit() calls. OpenMP calls exit(1) when it gets no thread or no memory. It has said so on stderr, but
/// names no limit.
void end_of_openmp(int code, void*) {
  if (!ends_normally.load() && code == EXIT_FAILURE) end_refused(kNoTeam);
}

/// A size of OpenMP in bytes: digits, then B, K, M or G, or the unit of the variable.
std::optional<unsigned long long> openmp_size(const char* text, unsigned long long unit) {
  while (std::isspace(static_cast<unsigned char>(*text))) ++text;
  if (!std::isdigit(static_cast<unsigned char>(*text))) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const unsigned long long number = std::strtoull(text, &end, 10);
  while (std::isspace(static_cast<unsigned char>(*end))) ++end;
  constexpr std::string_view kUnits = "BKMG";
  if (*end != '\0') {
    const size_t place = kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(*end))));
    if (place == std::string_view::npos) return std::nullopt;
    unit = 1ULL << 10 * place;
  }
  return errno == ERANGE || number > ~0ULL / unit ? ~0ULL : number * unit;
}

/// kSystem if the environment gives OpenMP's threads a stack that is too small; they would crash.
void check_openmp_stacks() {
  constexpr struct {
    const char* name;
    unsigned long long unit;  // of a number without one
  } kVariables[] = {
      {"OMP_STACKSIZE", 1024}, {"OMP_STACKSIZE_ALL", 1024}, {"GOMP_STACKSIZE", 1024}, {"KMP_STACKSIZE", 1}};
  for (const auto& [name, unit] : kVariables) {
    const char* const value = std::getenv(name);
    const auto size = value ? openmp_size(value, unit) : std::nullopt;
    if (size && *size < kLeastStack)
      fail(ErrorKind::kSystem, name, '=', value, " in the environment: stacks of ", *size >> 10,
           " KiB, wanted at least ", kLeastStack >> 10, " KiB; raise it or unset it");
  }
}

void end_of_unchecked(int number, siginfo_t* info, void*) {
  if (unchecked > 0 && reinterpret_cast<uintptr_t>(info->si_addr) < kFirstPage) end_refused(kNoMemory);
  ::sigaction(number, &earlier, nullptr);
  // A faulting instruction runs again and raises the signal again. One that a process sent does not come
  // again.
  if (info->si_code <= 0) ::raise(number);
}

}  // namespace

NoMemory out_of_memory() {
  const Error error = refusal(kNoMemory);
  return {error.kind(), error.what()};
}

Error as_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& ours) {
    return ours;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::system_error& other) {
    if (const char* const what = refused(other)) return refusal(what);
    return {ErrorKind::kInternal, other.what()};
  } catch (const std::exception& other) {
    return {ErrorKind::kInternal, other.what()};
  } catch (...) {
    return {ErrorKind::kInternal, "an exception without a message"};
  }
}

void check_stack_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < kLeastStack)
    fail(ErrorKind::kSystem, "the stack limit is ", limit.rlim_cur >> 10, " KiB, wanted at least ",
         kLeastStack >> 10, " KiB; raise it with ulimit -s");
  check_openmp_stacks();
}

void report_refusals(const char* name) {
  program = name;
  std::set_terminate(end_of_exception);
  ::on_exit(end_of_openmp, nullptr);
  struct sigaction action {};
  action.sa_sigaction = end_of_unchecked;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, &earlier);
}

void end_normally() {
  ends_normally.store(true);
}

UncheckedMemory::UncheckedMemory() {
  ++unchecked;
}

UncheckedMemory::~UncheckedMemory() {
  --unchecked;
}

}  // namespace megalith
