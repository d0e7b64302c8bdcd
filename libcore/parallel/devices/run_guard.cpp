#include "libcore/parallel/devices/run_guard.h"

#include <chrono>
#include <utility>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"

namespace megalith {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks(100);  // at the run, which wakes nobody when it stops
// A rank that is not in a call of the driver has ended its groups by then.
constexpr std::chrono::seconds kToEnd(4);

}  // namespace

RunGuard::RunGuard(const RunWatch& run, std::string name)
    : run_(run),
      name_(std::move(name)),
      thread_(
          "the guard of a stopped run", [this] { watch(); }, Beside::Alone::kFail) {}

RunGuard::~RunGuard() {
  stand_down();
}

void RunGuard::stand_down() {
  const std::lock_guard lock(mutex_);
  down_ = true;
  changed_.notify_one();
}

void RunGuard::watch() {
  const auto down = [this] { return down_; };
  std::unique_lock lock(mutex_);
  while (!run_.stopped())
    if (changed_.wait_for(lock, kBetweenLooks, down)) return;
  if (changed_.wait_for(lock, kToEnd, down)) return;
  tell("error: ", name_, ": stopped: ", run_.why_stopped(),
       "; a call of the CUDA driver does not end, and the process ends without it");
  ::_exit(exit_code(ErrorKind::kComm));
}

}  // namespace megalith
