#include "libcore/threads/last_wait.h"

#include <atomic>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

std::atomic<std::chrono::milliseconds> limit = std::chrono::milliseconds(std::chrono::minutes(10));

}  // namespace

std::chrono::milliseconds last_wait_limit() {
  return limit.load();
}

void set_last_wait_limit(std::chrono::milliseconds wanted) {
  limit.store(wanted);
}

void end_late_process(const char* what) {
  const double seconds = std::chrono::duration<double>(last_wait_limit()).count();
  tell("error: waited ", format_duration(seconds), " for ", what,
       ", which does not end; the process ends without it: run the same command again");
  ::_exit(exit_code(ErrorKind::kComm));
}

}  // namespace megalith
