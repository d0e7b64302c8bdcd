#include "libcore/parallel/devices/device_world.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/ops/backend/cuda_plugin.h"

namespace megalith {
namespace {

// For this long the host polls its device without a sleep. Then it leaves the core to others between polls.
constexpr std::chrono::milliseconds kMoment(1);
constexpr std::chrono::microseconds kBetweenPolls(50);
// Looks at NCCL and the other ranks are rarer: each asks every group of this rank.
constexpr std::chrono::milliseconds kBetweenLooks(5);
// Work that a rank took part in before it left may still end for this long.
constexpr std::chrono::milliseconds kGrace(500);

}  // namespace

/// One wait of the host for its device.
struct DeviceWorld::Wait {
  explicit Wait(RunWatch& watch) : run(watch) {}
  ~Wait() {
    if (told) run.wait_for_device(false);
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  RunWatch& run;
  const Clock::time_point begin = Clock::now();
  Clock::time_point moved = begin, next_look = begin + kMoment;  // `moved`: when a call was last seen to end
  std::vector<uint64_t> progress;
  bool told = false;
};

DeviceWorld::DeviceWorld(Communicator& host, Backend& backend, const DeviceCommOptions& options)
    : host_(host),
      backend_(backend),
      options_(options),
      run_(run_watch_of(host)),
      end_(host, groups_, [this] { return place(); }) {
  set_device_watch(backend_, this);
}

DeviceWorld::~DeviceWorld() {
  set_device_watch(backend_, nullptr);
}

// ---- waits

void DeviceWorld::await(const std::function<bool()>& done) {
  if (!in_own_thread()) {
    while (!done()) std::this_thread::sleep_for(kBetweenPolls);
    return;
  }
  Wait wait(run_);
  while (!done()) {
    if (end_.ended()) check_alive([this] { return place(); });
    const Clock::time_point now = Clock::now();
    if (now >= wait.next_look) look(wait);
    if (now < wait.begin + kMoment)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kBetweenPolls);
  }
}

void DeviceWorld::look(Wait& wait) {
  const Clock::time_point now = Clock::now();
  wait.next_look = now + kBetweenLooks;
  if (!std::exchange(wait.told, true)) run_.wait_for_device(true);
  check_alive([this] { return place(); });
  if (const std::string problem = groups_.problem(); !problem.empty()) end_.stop_by_nccl(problem);
  if (std::vector<uint64_t> at = groups_.progress(); at != wait.progress) {
    wait.progress = std::move(at);
    wait.moved = now;
  }
  const bool for_others = doing_ != nullptr || std::any_of(wait.progress.begin(), wait.progress.end(),
                                                           [](uint64_t turn) { return turn != 0; });
  if (!for_others) return;
  if (now - wait.moved > kGrace)
    if (const std::vector<int> left = run_.left(); !left.empty()) end_.stop_by_absence(left);
  if (now - wait.moved > run_.timeout()) end_.stop_late();
}

/// The call that this rank waits for.
std::string DeviceWorld::place() const {
  if (doing_ != nullptr) return (*doing_)();
  const std::string own = run_.name_of(run_.rank_at(host_.rank()));
  const auto pending = groups_.pending();
  if (!pending) return concat(host_.name(), ": ", own);
  return concat(pending->communicator, ": ", own, ": ", pending->call.substr(0, pending->call.find(' ')),
                ", call ", pending->number);
}

void DeviceWorld::attempt(const Place& place, const std::function<void()>& work) {
  if (!in_own_thread())
    fail(ErrorKind::kInternal, place(), ": another thread than the rank's own calls NCCL");
  struct Doing {
    Doing(const Place*& doing, const Place& now) : doing_(doing), before_(std::exchange(doing, &now)) {}
    ~Doing() { doing_ = before_; }
    Doing(const Doing&) = delete;
    Doing& operator=(const Doing&) = delete;
    const Place*& doing_;
    const Place* const before_;
  };
  const Doing doing(doing_, place);
  try {
    work();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kComm || end_.ended()) throw;
    end_.stop_by_nccl(error.what());
  }
}

}  // namespace megalith
